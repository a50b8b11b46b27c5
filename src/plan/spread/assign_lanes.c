/*
 * assign_lanes.c - assigns lanes to replicas. A replica has one partial sum for each maximal
 * sub-tree of its lanes in the lane tree; where replicas meet decides how many that are, and so
 * what is exchanged.
 */
#include "comm/lane_tree.h"
#include "plan/mesh.h"

typedef struct lane_try {
    int unit; // lanes are assigned in multiples of it
    double round;
    double most; // lanes of a replica by its share, at most
    int n_parts; // partial sums of all replicas: one for each sub-tree
} lane_try;

/*
 * Assigns lanes in multiples of unit by shares, at least one each; false: it cannot be. end may be
 * NULL: they are only counted.
 */
static bool try_assign(const tti_mesh *m, int n_lanes, int unit, double round, lane_try *out,
                       int *end)
{
    tti_part parts[TTI_MAX_PARTS];
    int first = m->n_without_lanes, n = tti_mesh_size(m, TTI_AXIS_DATA), at = 0;
    double total = 0, sum = 0;
    *out = (lane_try){.unit = unit, .round = round};
    for (int r = first; r < n; r++)
        total += tti_mesh_share(m, r);
    for (int r = first; r < n; r++) {
        double share = tti_mesh_share(m, r);
        sum += share;
        int to = r == n - 1 ? n_lanes : (int)(sum / total * n_lanes / unit + round) * unit;
        if (unit == 1)
            to = TTI_MAX(TTI_MIN(to, n_lanes - (n - 1 - r)), at + 1);
        if (to <= at || to > n_lanes)
            return false;
        out->most = TTI_MAX(out->most, (to - at) / share);
        out->n_parts += tti_lane_range_parts(at, to, n_lanes, parts);
        at = to;
        if (end != NULL)
            end[r] = to;
    }
    return true;
}

void tti_assign_lanes(const tti_mesh *m, int n_lanes, int *end)
{
    static const double rounds[] = {0.5, 0, 0.999};
    lane_try best, now;
    (void)try_assign(m, n_lanes, 1, 0.5, &best, NULL); // which can always be
    double least = best.most;
    for (int k = 1; k < TTI_COUNT(rounds); k++)
        if (try_assign(m, n_lanes, 1, rounds[k], &now, NULL))
            least = TTI_MIN(least, now.most);
    bool has_best = best.most <= least * 1.05;
    int workers = tti_mesh_size(m, TTI_AXIS_DATA) - m->n_without_lanes;
    for (int unit = 1; unit <= TTI_MAX(n_lanes / workers, 1); unit *= 2)
        for (int k = 0; k < TTI_COUNT(rounds); k++) {
            if (!try_assign(m, n_lanes, unit, rounds[k], &now, NULL) || now.most > least * 1.05 ||
                (has_best && now.n_parts >= best.n_parts))
                continue;
            best = now;
            has_best = true;
        }
    for (int r = 0; r < m->n_without_lanes; r++)
        end[r] = 0;
    (void)try_assign(m, n_lanes, best.unit, best.round, &best, end);
}
