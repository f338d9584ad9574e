-- +++
-- doc = """Which chip each device of the trace is, as far as its properties tell. A device of a dry
-- run is none, whatever `--device` says: its measured times are those of this machine."""
-- key = ["rank", "device"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device as the work names it."
-- reported_name = "Name that the capture gave it."
-- chip = "Chip it is judged by; NULL where it is not recognised."
-- modelled = "Whether that chip is another one than the trace was recorded on."
-- bandwidth_bytes_per_s = "Memory bandwidth of the chip (bytes/s)."
-- peak_flops = "Peak of the chip by dtype: fp64, fp32, tf32, fp16, bf16, fp8, int8 (flop/s)."
-- +++
-- An index that the properties do not name takes the row without one.
WITH used AS (
    SELECT DISTINCT
        rank,
        device,
        device = 'cpu' AS host,
        try_cast(split_part(device, ':', 2) AS INTEGER) AS device_index
    FROM work
)

SELECT
    u.rank,
    u.device,
    d.reported_name,
    d.chip,
    d.modelled,
    c.bandwidth_bytes_per_s,
    c.peak_flops
FROM used AS u
LEFT JOIN raw.device_chips AS d
    ON u.rank = d.rank AND u.host = d.host AND NOT ends_with(u.device, 'dry run)')
LEFT JOIN raw.chips AS c ON d.chip = c.chip
QUALIFY row_number() OVER (
    PARTITION BY u.rank, u.device
    ORDER BY d.device_index IS NOT DISTINCT FROM u.device_index DESC, d.device_index IS NULL DESC
) = 1
