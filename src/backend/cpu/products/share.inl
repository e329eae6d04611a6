// How lanes share a product of matrices: each takes some rows of some groups of sixteen outputs.

struct TileShare {
  LaneRange rows, groups;
};

// Cuts rows x groups as evenly as whole tiles allow. Among all numbers of row bands it takes the
// one with the least time for the busiest lane. Every lane makes the panels of its groups, which
// costs as much as `panel_rows` rows of them. Surplus lanes get nothing.
inline TileShare tile_share(int64_t rows, int64_t row_grain, int64_t groups, int64_t group_grain,
                            int64_t panel_rows, const Lane& lane) {
  const int64_t tiles = (rows + row_grain - 1) / row_grain;
  const int64_t units = (groups + group_grain - 1) / group_grain;
  int64_t bands = 1, least = INT64_MAX;
  for (int64_t n = 1; n <= lane.count && n <= tiles; ++n) {
    const int64_t strips = lane.count / n;
    const int64_t max_rows = (tiles + n - 1) / n * row_grain + panel_rows;
    const int64_t time = (units + strips - 1) / strips * max_rows;
    if (time < least) least = time, bands = n;
  }
  const int64_t strips = lane.count / bands;
  const int64_t band = lane.index / strips, strip = lane.index % strips;
  if (band >= bands) return {{0, 0}, {0, 0}};
  return {lane_range(rows, row_grain, static_cast<int>(band), static_cast<int>(bands)),
          lane_range(groups, group_grain, static_cast<int>(strip), static_cast<int>(strips))};
}
