-- +++
-- doc = "Every chip that this program has figures for."
-- key = ["chip"]
--
-- [columns]
-- chip = "Name, as `--device` takes it."
-- title = "What it is called in full."
-- vendor = "Who makes it."
-- unit = "What PyTorch counts as one device of it: GPU, GCD, chip, logical core, host."
-- memory_bytes = "Size of its memory (bytes)."
-- bandwidth_bytes_per_s = "Bandwidth of its memory (bytes/s)."
-- peak_flops = "Dense peak by dtype: fp64, fp32, tf32, fp16, bf16, fp8, int8 (flop/s)."
-- roof_share = "Achieved over peak from which on a unit of work counts as at the roof."
-- achievable_matmul = "Best measured bf16 matmul over the peak, 0 to 1."
-- sources = "Where each figure comes from."
-- +++
SELECT
    chip,
    title,
    vendor,
    unit,
    memory_bytes,
    bandwidth_bytes_per_s,
    peak_flops,
    roof_share,
    achievable_matmul,
    sources
FROM raw.chips
ORDER BY chip ASC
