-- +++
-- title = "Runs on the CPU: {op_name}"
-- question = "Which ops does the device hand to the CPU?"
-- severity = "warning"
-- needs = ["privateuse"]
-- message = """
-- {op_name} fell back to the CPU: {count:count call}[[, {copied_bytes:bytes} copied to the \
-- host and back]][[, {duration_ns:ns} on the host]]. Every input is copied out, the op waits for \
-- all that the device was given before, and its result is copied in; inside torch.compile it \
-- breaks the graph."""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "op_name"]
-- proof = """
-- SELECT *
-- FROM fallbacks
-- WHERE rank = {rank} AND op_name = {op_name}
--     AND source_file IS NOT DISTINCT FROM {source_file}
--     AND source_line IS NOT DISTINCT FROM {source_line}"""
-- reference = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
--
-- [columns]
-- op_name = "Op that the device has no program for."
-- count = "How often it ran on the CPU."
-- copied_bytes = "Bytes of its tensors copied out and in; NULL where unknown (bytes)."
-- duration_ns = "Time on the host, copies included; NULL in a dry run (ns)."
-- device = "Device that handed it over."
-- recognised_by = "How it was seen: marked, to_cpu or copyout."
-- rank = "Distributed rank."
-- source_file = "File of the line that called it."
-- source_line = "That line."
-- saving_low_ns = "0: the op has to run somewhere."
-- saving_high_ns = "duration_ns."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "measured; modelled in a dry run, whose counts rest on its list of supported ops."
-- confidence = "high where the device or torch marks them."
-- fix = "The change to make."
-- event_ids = "The first of the calls."
-- +++
-- A device without a program for an op lets the CPU run it. The copies are seldom the worst: the
-- host waits until the device has done all that it was given, and the device then waits for the
-- host.
--
-- In a dry run the list of supported ops is data (docs/dry-run.md); a newer runtime may know more.
-- An op that only ran while the data was prepared is harmless.
--
-- Next: on the device, TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS=1 makes ops whose
-- compilation fails raise instead of falling back.
SELECT
    f.op_name,
    f.count::BIGINT AS count,
    f.copied_bytes,
    f.device,
    f.recognised_by,
    f.rank,
    f.source_file,
    f.source_line,
    if(ends_with(f.device, 'dry run)'), NULL, f.duration_ns) AS duration_ns,
    if(ends_with(f.device, 'dry run)'), NULL, 0) AS saving_low_ns,
    if(ends_with(f.device, 'dry run)'), NULL, f.duration_ns) AS saving_high_ns,
    'high: all the time on the host; the op itself has to run somewhere' AS saving_basis,
    if(ends_with(f.device, 'dry run)'), 'modelled', 'measured') AS figures,
    if(f.recognised_by = 'copyout', 'medium', 'high') AS confidence,
    CASE
        WHEN regexp_matches(f.op_name, 'rand|bernoulli|multinomial|normal|uniform|exponential')
            THEN
                'Draw the random numbers once, before the loop or in the data loader, and move '
                || 'them to the device with the batch.'
        WHEN regexp_matches(f.op_name, 'nonzero|masked_select|unique|repeat_interleave|bincount')
            THEN
                'The size of its result depends on the data, which no static program can have: use '
                || 'torch.where, a mask, or a padded index of fixed size.'
        WHEN regexp_matches(f.op_name, 'sort|median|kthvalue|mode')
            THEN
                'Use torch.topk where the largest suffice, or move it out of the step.'
        ELSE
            'Write it with supported ops, or move it out of the step: before the loop, or into the '
            || 'data loader.'
    END AS fix,
    [f.first_event_id] AS event_ids
FROM fallbacks AS f
ORDER BY f.count DESC, f.rank ASC, f.first_event_id ASC
