/*
 * assign_lanes.c - assigns lanes to replicas. A replica has one partial sum for each maximal
 * sub-tree of its lanes in the lane tree; where replicas meet decides how many that are, and so
 * what is exchanged.
 */
#include "comm/lane_tree.h"
#include "plan/mesh.h"
#include <string.h>

typedef struct lane_try {
    int end[TTI_MAX_DEVICES]; // lanes up to which replica r takes
    double most;              // lanes of a replica by its share, at most
    int n_parts;              // partial sums of all replicas: one for each sub-tree
} lane_try;

// Assigns lanes in multiples of unit by shares, at least one each; false: it cannot be.
static bool try_assign(const tti_mesh *m, int n_lanes, int unit, double round, lane_try *out)
{
    tti_part parts[TTI_MAX_PARTS];
    int n = m->n_replicas, at = 0;
    double total = 0, sum = 0;
    *out = (lane_try){.most = 0};
    for (int r = 0; r < n; r++)
        total += m->share[r] > 0 ? m->share[r] : 1;
    for (int r = 0; r < n; r++) {
        double share = m->share[r] > 0 ? m->share[r] : 1;
        sum += share;
        int to = r == n - 1 ? n_lanes : (int)(sum / total * n_lanes / unit + round) * unit;
        if (unit == 1)
            to = TTI_MAX(TTI_MIN(to, n_lanes - (n - 1 - r)), at + 1);
        if (to <= at || to > n_lanes)
            return false;
        out->most = TTI_MAX(out->most, (to - at) / share);
        out->n_parts += tti_lane_range_parts(at, to, n_lanes, parts);
        out->end[r] = at = to;
    }
    return true;
}

void tti_assign_lanes(const tti_mesh *m, int n_lanes, int *end)
{
    if (m->is_apart) {
        tti_mesh rest = *m;
        rest.is_apart = false;
        rest.n_replicas--;
        memmove(rest.share, m->share + 1, sizeof(*m->share) * (size_t)rest.n_replicas);
        end[0] = 0;
        tti_assign_lanes(&rest, n_lanes, end + 1);
        return;
    }
    static const double rounds[] = {0.5, 0, 0.999};
    lane_try best, now;
    (void)try_assign(m, n_lanes, 1, 0.5, &best); // which can always be
    double least = best.most;
    for (int k = 1; k < TTI_COUNT(rounds); k++)
        if (try_assign(m, n_lanes, 1, rounds[k], &now))
            least = TTI_MIN(least, now.most);
    bool has_best = best.most <= least * 1.05;
    for (int unit = 1; unit <= TTI_MAX(n_lanes / m->n_replicas, 1); unit *= 2)
        for (int k = 0; k < TTI_COUNT(rounds); k++) {
            if (!try_assign(m, n_lanes, unit, rounds[k], &now) || now.most > least * 1.05 ||
                (has_best && now.n_parts >= best.n_parts))
                continue;
            best = now;
            has_best = true;
        }
    memcpy(end, best.end, sizeof(int) * (size_t)m->n_replicas);
}
