// SPDX-License-Identifier: GPL-2.0

//! The best shares of the time that groups of events can have: a linear program over all sets of
//! groups that fit together, solved by the simplex method.

/// What can be had at best.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Optimum {
    /// The smallest share, if it is made as large as possible.
    pub(crate) smallest: f64,
    /// The mean number of counters in use, made as large as possible while that stays so.
    pub(crate) busy: f64,
}

/// For groups of `sizes[group]` events each; `fits` says which sets of groups (a bit for each) fit.
pub(crate) fn optimum(sizes: &[usize], fits: impl Fn(u32) -> bool) -> Optimum {
    let sets: Vec<u32> = (1..1 << sizes.len()).filter(|set| fits(*set)).collect();
    let in_use = |set: u32| -> f64 {
        let groups = sizes.iter().enumerate();
        let used = groups.filter(|(group, _)| (set >> group) & 1 != 0);
        used.map(|(_, size)| *size as f64).sum()
    };
    // Variables: the time of each set, and the smallest share, last. The latter goes first by far.
    const FIRST: f64 = 1e4;
    let mut goal: Vec<f64> = sets.iter().map(|set| in_use(*set)).collect();
    goal.push(FIRST);
    // All times together are one at most. No group's is less than the smallest share.
    let mut rows = vec![(vec![1.0; sets.len()], 1.0)];
    rows[0].0.push(0.0);
    for group in 0..sizes.len() {
        let has = |set: &u32| -f64::from((set >> group) & 1);
        let mut row: Vec<f64> = sets.iter().map(has).collect();
        row.push(1.0);
        rows.push((row, 0.0));
    }
    let times = maximize(&goal, &rows);
    Optimum {
        smallest: times[sets.len()],
        busy: sets
            .iter()
            .zip(&times)
            .map(|(set, time)| in_use(*set) * time)
            .sum(),
    }
}

/// The x >= 0 for which goal * x is greatest, with row * x <= limit for all rows; no limit is
/// negative. By the tableau method, with Bland's rule, which ends.
fn maximize(goal: &[f64], rows: &[(Vec<f64>, f64)]) -> Vec<f64> {
    const TINY: f64 = 1e-9;
    let (n, m) = (goal.len(), rows.len());
    let mut tableau: Vec<Vec<f64>> = Vec::new();
    for (number, (row, limit)) in rows.iter().enumerate() {
        let mut line = row.clone();
        line.extend((0..m).map(|slack| f64::from(u8::from(slack == number))));
        line.push(*limit);
        tableau.push(line);
    }
    let mut costs: Vec<f64> = goal.iter().map(|it| -it).collect();
    costs.resize(n + m + 1, 0.0);
    let mut basis: Vec<usize> = (n..n + m).collect();
    while let Some(enters) = costs[..n + m].iter().position(|cost| *cost < -TINY) {
        let ratio = |row: usize| tableau[row][n + m] / tableau[row][enters];
        let leaves = (0..m)
            .filter(|row| tableau[*row][enters] > TINY)
            .min_by(|a, b| {
                ratio(*a)
                    .total_cmp(&ratio(*b))
                    .then(basis[*a].cmp(&basis[*b]))
            })
            .expect("the program is bounded");
        let pivot = tableau[leaves][enters];
        tableau[leaves].iter_mut().for_each(|it| *it /= pivot);
        let line = tableau[leaves].clone();
        let others = tableau.iter_mut().enumerate();
        let others = others.filter(|(row, _)| *row != leaves).map(|(_, row)| row);
        for row in others.chain([&mut costs]) {
            let factor = row[enters];
            row.iter_mut()
                .zip(&line)
                .for_each(|(it, by)| *it -= factor * by);
        }
        basis[leaves] = enters;
    }
    let mut x = vec![0.0; n];
    for (row, variable) in basis.iter().enumerate() {
        if *variable < n {
            x[*variable] = tableau[row][n + m];
        }
    }
    x
}
