/*
 * mesh.c - coordinates of devices on the grid, and the shares of lanes along data.
 */
#include "plan/mesh.h"
#include "base/value.h"
#include <stdio.h>
#include <string.h>

static const char *const names[TTI_N_AXES] = {"data", "pipe", "tensor", "shard", "expert"};

const char *tti_mesh_axis_name(tti_mesh_axis axis)
{
    return names[axis];
}

tti_mesh tti_mesh_make(int replicas, int n_pipe)
{
    return (tti_mesh){
        .n_axes = 2, .axis = {{TTI_AXIS_DATA, replicas}, {TTI_AXIS_PIPE, n_pipe}}, .n_micro = 1};
}

int tti_mesh_size(const tti_mesh *m, tti_mesh_axis axis)
{
    for (int i = 0; i < m->n_axes; i++)
        if (m->axis[i].name == axis)
            return m->axis[i].size;
    return 1;
}

int tti_mesh_n_devices(const tti_mesh *m)
{
    int n = 1;
    for (int i = 0; i < m->n_axes; i++)
        n *= m->axis[i].size;
    return n;
}

int tti_mesh_at(const tti_mesh *m, const int coordinate[TTI_N_AXES])
{
    int device = 0;
    for (int i = 0; i < m->n_axes; i++)
        device = device * m->axis[i].size + coordinate[m->axis[i].name];
    return device;
}

int tti_mesh_coordinate(const tti_mesh *m, int device, tti_mesh_axis axis)
{
    for (int i = m->n_axes - 1; i >= 0; i--) {
        if (m->axis[i].name == axis)
            return device % m->axis[i].size;
        device /= m->axis[i].size;
    }
    return 0;
}

int tti_mesh_device(const tti_mesh *m, int r, int l)
{
    return tti_mesh_at(m, (const int[TTI_N_AXES]){[TTI_AXIS_DATA] = r, [TTI_AXIS_PIPE] = l});
}

const char *tti_mesh_text(const tti_mesh *m, char out[TTI_MESH_TEXT])
{
    int n = 0;
    out[0] = '\0';
    for (int i = 0; i < m->n_axes && n < TTI_MESH_TEXT; i++)
        n += snprintf(out + n, (size_t)(TTI_MESH_TEXT - n), "%s%s %d", i > 0 ? " x " : "",
                      names[m->axis[i].name], m->axis[i].size);
    return out;
}

tt_status tti_mesh_check(tt_ctx *ctx, const tti_mesh *m, int n_devices)
{
    char text[TTI_MESH_TEXT];
    int64_t n = 1;
    unsigned seen = 0;
    if (m->n_axes < 0 || m->n_axes > TTI_N_AXES)
        return TT_FAIL(ctx, TT_EINVAL, "mesh: %d axes; 0 to %d are allowed", m->n_axes, TTI_N_AXES);
    for (int i = 0; i < m->n_axes; i++) {
        tti_mesh_axis name = m->axis[i].name;
        int size = m->axis[i].size;
        if ((int)name < 0 || name >= TTI_N_AXES)
            return TT_FAIL(ctx, TT_EINVAL, "mesh: there is no axis number %d", (int)name);
        if (size < 1)
            return TT_FAIL(ctx, TT_EINVAL, "mesh: axis %s has size %d; use at least 1", names[name],
                           size);
        if ((seen >> name & 1u) != 0)
            return TT_FAIL(ctx, TT_EINVAL, "mesh: axis %s is there twice", names[name]);
        if (name > TTI_AXIS_PIPE && size > 1)
            return TT_FAIL(ctx, TT_EUNSUPPORTED,
                           "mesh: axis %s has size %d, but plans are spread along data and pipe "
                           "only; use size 1",
                           names[name], size);
        seen |= 1u << name;
        n *= size;
    }
    if (m->n_axes > 0 && n > n_devices)
        return TT_FAIL(ctx, TT_EINVAL, "mesh: %s needs %lld devices, but there %s %d",
                       tti_mesh_text(m, text), (long long)n, n_devices == 1 ? "is" : "are",
                       n_devices);
    int replicas = tti_mesh_size(m, TTI_AXIS_DATA), n_pipe = tti_mesh_size(m, TTI_AXIS_PIPE);
    if (m->n_without_lanes < 0 || m->n_without_lanes >= replicas)
        return TT_FAIL(ctx, TT_EINVAL, "mesh: %d of %d replicas take no lanes; at least one must",
                       m->n_without_lanes, replicas);
    if (m->n_stages < 0 || m->n_stages % n_pipe != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "mesh: %d stages cannot be divided evenly among %d devices of axis pipe",
                       m->n_stages, n_pipe);
    return TT_OK;
}

// ---- shares ----------------------------------------------------------------------------------

// The r-th of the numbers in "2,1", which a strategy has looked at.
static double nth_share(const char *text, int r)
{
    char word[32];
    double share = 1;
    for (; r > 0; r--)
        text += strcspn(text, ",") + 1;
    text += strspn(text, " ");
    snprintf(word, sizeof(word), "%.*s", (int)TTI_MIN(strcspn(text, ","), sizeof(word) - 1), text);
    return tti_double_parse(word, &share) ? share : 1;
}

// A replica is as fast as the slowest of its devices.
double tti_mesh_share(const tti_mesh *m, int r)
{
    double share = 1;
    if (m->speed != NULL) {
        share = m->speed[tti_mesh_device(m, r, 0)];
        for (int l = 1; l < tti_mesh_size(m, TTI_AXIS_PIPE); l++)
            share = TTI_MIN(share, m->speed[tti_mesh_device(m, r, l)]);
    } else if (m->share != NULL && r >= m->n_without_lanes) {
        share = nth_share(m->share, r - m->n_without_lanes);
    }
    return share > 0 ? share : 1;
}
