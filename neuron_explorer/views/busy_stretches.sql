-- +++
-- doc = """Stretches in which at least one device of a rank worked, disjoint and in order. Busy
-- time up to any moment t is before_ns + least(t, end_ns) - start_ns of the last row with
-- start_ns <= t (ASOF JOIN), or 0; that within a window is the difference of its two ends."""
-- key = ["rank", "start_ns"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- start_ns = "Start (ns)."
-- end_ns = "End; the next may begin at once (ns)."
-- before_ns = "Busy time of the rank before it (ns)."
-- +++
SELECT
    rank,
    end_ns - rank_busy_ns AS start_ns,
    end_ns,
    coalesce(
        sum(rank_busy_ns) OVER (
            PARTITION BY rank ORDER BY end_ns ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0
    )::BIGINT AS before_ns
FROM timeline
WHERE rank_busy_ns > 0
