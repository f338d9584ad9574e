-- +++
-- title = "Peak of memory on {device}: {say_holder}"
-- question = "What is alive when a device holds the most memory, and which line holds it?"
-- severity = "info"
-- needs = ["addresses", "measured"]
-- message = """
-- {device} holds {say_most}{peak_bytes:bytes} at its peak[[ in step {step}]][[, \
-- {memory_share:share} of its memory]][[, while {peak_op} runs at {say_peak}]]. Of that \
-- {seen_bytes:bytes} were taken in this trace: {say_holders}."""
-- advice = "{fix}"
-- key = ["rank", "device"]
-- proof = """
-- SELECT *
-- FROM allocations
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY alloc_bytes DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/torch_cuda_memory.html"
--
-- [params.min_bytes]
-- default = 64_000_000
-- doc = "Devices on which the trace saw less of the peak being taken are left out (bytes)."
--
-- [params.warning_share]
-- default = 0.8
-- doc = "From this share of the device's memory on it is a warning, else info."
--
-- [columns]
-- peak_bytes = "In use at the peak; what the trace took on its own where say_most is set (bytes)."
-- memory_share = "peak_bytes over the device's memory; NULL where one of them is unknown."
-- seen_bytes = "What of it was taken inside the trace and not yet freed (bytes)."
-- holder_bytes = "What of that the line below took (bytes)."
-- rank = "Distributed rank."
-- device = "Device whose memory it is."
-- source_file = "File of the line that holds most of seen_bytes; NULL without lines."
-- source_line = "That line."
-- module = "Module that holds most at that line; NULL where unknown."
-- holder_op = "Op that took most of it there; NULL where unknown."
-- step = "Step of the peak; NULL where the trace has no steps."
-- peak_op = "Op that reached the peak; NULL where unknown."
-- phase = "Phase in which the line took most of it; NULL where unknown."
-- severity = "warning or info, by memory_share."
-- saving_low_ns = "NULL: memory is no time."
-- saving_high_ns = "NULL: memory is no time."
-- saving_basis = "Why no saving is stated."
-- confidence = "high where the allocator told its total."
-- say_most = "at least, where the trace does not know what was taken before it."
-- say_peak = "Line of the op that reached the peak; NULL without lines."
-- say_holder = "The line, module or op that holds most, as text."
-- say_holders = "The five places that hold most, as text."
-- fix = "The change to make."
-- event_ids = "The largest allocations alive at the peak, one hundred at most."
-- start_ns = "When the peak was reached."
-- +++
-- An allocation is alive until the same address is freed. What was taken before the trace began
-- (weights, optimizer state) is only known as the rest of the allocator's total.
--
-- The peak limits batch size and model size; it costs no time until memory runs out. Activations
-- kept for the backward stand at the lines of the forward that made them.
--
-- Next: `SELECT start_ns, live_bytes FROM allocations WHERE device = '...' ORDER BY 1`.
WITH limits AS (
    SELECT
        $warning_share AS warning_share,
        $min_bytes AS min_bytes
),

peaks AS (
    SELECT
        a.rank,
        a.device,
        a.event_id AS peak_id,
        a.start_ns AS peak_ns,
        a.live_bytes AS peak_bytes,
        a.live_is_relative,
        a.step,
        o.name AS peak_op,
        array_to_string(string_split(a.source_file, '/')[-2:], '/') || ':' || a.source_line
            AS say_peak
    FROM allocations AS a
    LEFT JOIN events AS o
        ON a.rank = o.rank AND a.op_id = o.event_id AND o.layer = 'framework'
    QUALIFY row_number() OVER (
        PARTITION BY a.rank, a.device
        ORDER BY a.live_bytes DESC, a.start_ns ASC, a.event_id ASC
    ) = 1
),

alive AS (
    SELECT
        rank,
        device,
        event_id,
        alloc_bytes,
        source_file,
        source_line,
        module,
        op_name,
        phase,
        coalesce(
            array_to_string(string_split(source_file, '/')[-2:], '/') || ':' || source_line,
            module, op_name, phase, 'no op'
        ) AS spot
    FROM lifetimes
    WHERE at_peak
),

spots AS (
    SELECT
        rank,
        device,
        spot,
        sum(alloc_bytes)::BIGINT AS spot_bytes,
        any_value(source_file) AS source_file,
        any_value(source_line) AS source_line,
        arg_max(module, (alloc_bytes, event_id)) AS module,
        arg_max(op_name, (alloc_bytes, event_id)) AS holder_op,
        arg_max(phase, (alloc_bytes, event_id)) AS phase
    FROM alive
    GROUP BY rank, device, spot
),

shares AS (
    SELECT
        *,
        sum(spot_bytes) OVER (PARTITION BY rank, device) AS seen_bytes
    FROM spots
),

holders AS (
    SELECT
        rank,
        device,
        any_value(seen_bytes)::BIGINT AS seen_bytes,
        max(spot_bytes) AS holder_bytes,
        arg_max(
            {
                'file': source_file, 'line': source_line, 'module': module, 'op': holder_op,
                'phase': phase, 'spot': spot
            },
            (spot_bytes, spot)
        ) AS top,
        list(
            printf('%.0f', 100.0 * spot_bytes / seen_bytes) || ' % ' || spot
            ORDER BY spot_bytes DESC, spot ASC
        )[1:5] AS tops
    FROM shares
    GROUP BY rank, device
),

largest AS (
    SELECT
        rank,
        device,
        list(event_id ORDER BY alloc_bytes DESC, event_id ASC)[1:100] AS event_ids
    FROM alive
    GROUP BY rank, device
)

SELECT
    p.peak_bytes,
    h.seen_bytes,
    h.holder_bytes,
    p.rank,
    p.device,
    h.top.file AS source_file,
    h.top.line AS source_line,
    h.top.module AS module,
    h.top.op AS holder_op,
    p.step,
    p.peak_op,
    h.top.phase AS phase,
    p.say_peak,
    h.top.spot AS say_holder,
    g.event_ids,
    p.peak_ns AS start_ns,
    NULL::BIGINT AS saving_low_ns,
    NULL::BIGINT AS saving_high_ns,
    'none: memory is no time' AS saving_basis,
    round(if(p.live_is_relative, NULL, p.peak_bytes) / z.memory_bytes, 4) AS memory_share,
    CASE
        WHEN NOT p.live_is_relative AND p.peak_bytes >= limits.warning_share * z.memory_bytes
            THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE WHEN p.live_is_relative THEN 'medium' ELSE 'high' END AS confidence,
    CASE WHEN p.live_is_relative THEN 'at least ' ELSE '' END AS say_most,
    array_to_string(h.tops, ', ') AS say_holders,
    CASE
        WHEN h.top.phase = 'optimizer'
            THEN
                'Optimizer state: shard it (FSDP, ZeroRedundancyOptimizer), keep it in fewer bits,'
                || ' or give it to parameters that train only.'
        WHEN h.top.phase = 'backward'
            THEN
                'Taken in the backward: set_to_none=True, gradient accumulation in smaller'
                || ' micro-batches, or optimizer steps inside the backward (post-accumulate hooks)'
                || ' so that gradients do not all live at once.'
        ELSE
            'If nothing needs its gradient, run it under torch.inference_mode() and in pieces;'
            || ' else checkpoint this module (torch.utils.checkpoint), use bf16 (autocast) or'
            || ' smaller micro-batches; keep loss.item() or loss.detach() in lists, never the loss.'
    END AS fix
FROM peaks AS p
INNER JOIN holders AS h ON p.rank = h.rank AND p.device = h.device
INNER JOIN largest AS g ON p.rank = g.rank AND p.device = g.device
LEFT JOIN device_memory AS z ON p.rank = z.rank AND p.device = z.device
CROSS JOIN limits
WHERE h.seen_bytes >= limits.min_bytes
ORDER BY h.seen_bytes DESC, p.rank ASC, p.device ASC
