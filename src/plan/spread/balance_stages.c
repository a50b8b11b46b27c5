/*
 * balance_stages.c - cuts a chain into stages. The least limit that no stage need exceed is found
 * by bisection, with limits that some cut really has: so it ends, and at the exact value. Then cuts
 * are moved while that lowers the costlier of two neighbours, as the limit alone would leave one
 * stage with all the slack.
 */
#include "plan/spread/pipe_schedule.h"
#include <math.h>

typedef struct chain {
    int n;
    const double *cost;
    const uint8_t *can_cut;
    int n_stages;
    int *first; // element of each stage
} chain;

// Where stage s ends.
static int end_of(const chain *c, int s)
{
    return s + 1 < c->n_stages ? c->first[s + 1] : c->n;
}

// Costs from the last element to the first, on top of those of what follows.
static double add(const chain *c, double cost, int from, int to)
{
    for (int i = to - 1; i >= from; i--)
        cost += isfinite(c->cost[i]) && c->cost[i] > 0 ? c->cost[i] : 0;
    return cost;
}

// The place for a cut after or before i, itself not counted; 0 or n: there is none.
static int next_cut(const chain *c, int i)
{
    for (i++; i < c->n && !c->can_cut[i]; i++)
        ;
    return TTI_MIN(i, c->n);
}

static int last_cut(const chain *c, int i)
{
    for (i--; i > 0 && !c->can_cut[i]; i--)
        ;
    return TTI_MAX(i, 0);
}

static int count_cuts(const chain *c)
{
    int n = 0;
    for (int i = next_cut(c, 0); i < c->n; i = next_cut(c, i))
        n++;
    return n;
}

/*
 * Fills stages up to the limit, but leaves places for the cuts still to come. From the back: what
 * is left over falls to the first stages, which have the most micro-batches in flight. False if it
 * does not fit; else *most is what the costliest stage comes to.
 */
static bool cut_by(chain *c, double limit, double *most)
{
    int left = count_cuts(c), end = c->n;
    *most = 0;
    for (int s = c->n_stages - 1; s >= 0; s--) {
        int at = last_cut(c, end);
        double cost = add(c, 0, at, end);
        left -= at > 0;
        while (at > 0 && left >= s) { // s more stages: the cut at hand, and s - 1 before it
            int further = last_cut(c, at);
            double more = add(c, cost, further, at);
            if (more > limit)
                break;
            cost = more;
            at = further;
            left -= at > 0;
        }
        c->first[s] = end = at;
        *most = TTI_MAX(*most, cost);
    }
    return end == 0 && *most <= limit;
}

// Moves the cut before stage s where that lowers the costlier side.
static bool move_cut(chain *c, int s)
{
    int low = c->first[s - 1], high = end_of(c, s), at = c->first[s];
    double most = TTI_MAX(add(c, 0, low, at), add(c, 0, at, high));
    int tries[2] = {last_cut(c, at), next_cut(c, at)};
    for (int k = 0; k < 2; k++) {
        if (tries[k] <= low || tries[k] >= high)
            continue;
        if (TTI_MAX(add(c, 0, low, tries[k]), add(c, 0, tries[k], high)) < most) {
            c->first[s] = tries[k];
            return true;
        }
    }
    return false;
}

bool tti_balance(int n, const double *cost, const uint8_t *can_cut, int n_stages, int *stage)
{
    // There are no more stages than elements, so stage has room for where they begin.
    chain c = {.n = n, .cost = cost, .can_cut = can_cut, .n_stages = n_stages, .first = stage};
    if (n < 1 || n_stages < 1 || count_cuts(&c) < n_stages - 1)
        return false;
    double low = 0, high = add(&c, 0, 0, n), most;
    if (cut_by(&c, high, &most))
        high = most;
    while (low + (high - low) / 2 > low && low + (high - low) / 2 < high) {
        double limit = low + (high - low) / 2;
        if (cut_by(&c, limit, &most))
            high = most;
        else
            low = limit;
    }
    (void)cut_by(&c, high, &most);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 1; s < n_stages; s++)
            moved |= move_cut(&c, s);
    }
    for (int s = n_stages - 1, end = n; s >= 0; s--) { // from the back: first[s] is at least s
        int first = c.first[s];
        for (int i = first; i < end; i++)
            stage[i] = s;
        end = first;
    }
    return true;
}
