// SPDX-License-Identifier: GPL-2.0

//! The optimal shares of the time of rotating groups: a linear program over all sets of groups that
//! fit together, solved by the simplex method.

/// The optimum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Optimum {
    /// The largest possible smallest share.
    pub(crate) smallest: f64,
    /// The largest possible mean number of busy counters with that smallest share.
    pub(crate) busy: f64,
}

/// Returns the optimum for groups of `sizes[group]` events. `fits` returns whether a set of groups
/// (a bit each) fits.
pub(crate) fn optimum(sizes: &[usize], fits: impl Fn(u32) -> bool) -> Optimum {
    let sets: Vec<u32> = (1..1 << sizes.len()).filter(|set| fits(*set)).collect();
    let in_use = |set: u32| -> f64 {
        let groups = sizes.iter().enumerate();
        let used = groups.filter(|(group, _)| (set >> group) & 1 != 0);
        used.map(|(_, size)| *size as f64).sum()
    };
    // Variables: the time of each set and, last and with by far the largest weight, the smallest
    // share.
    const FIRST: f64 = 1e4;
    let mut goal: Vec<f64> = sets.iter().map(|set| in_use(*set)).collect();
    goal.push(FIRST);
    // The times add up to at most 1. No group's share is less than the smallest.
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

/// Returns the x >= 0 that maximises goal * x, with row * x <= limit for all rows; no limit is
/// negative. Uses the tableau method, with Bland's rule so that it terminates.
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
