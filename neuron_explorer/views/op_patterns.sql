-- +++
-- doc = """Runs of op calls that spell out what one op of PyTorch does, or what a compiler would
-- make one kernel: attention, layer_norm, rms_norm, softmax, gelu, cross_entropy, log_softmax,
-- binary_cross_entropy, rotary_embedding. Each call is a letter by its name and shapes, each
-- pattern a regular expression over them."""
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- pattern = "What the run spells out."
-- pid = "Process id."
-- tid = "Thread id."
-- first_place = "Its first call: place in `op_calls`."
-- last_place = "Its last call; all between them belong to the run."
-- letters = "The calls that matched, a letter each."
-- shape = "Shape of what it computes; for attention that of the scores."
-- inputs = "Shapes of the first call: they name the run where no line does."
-- +++
-- A column is a tensor whose last dimension is 1, as keepdim leaves it. Letters: Q product, O
-- softmax, P log_softmax, S sigmoid, m mean to a column, v var or std to one, k max to one, a sum,
-- d mul or div by a column, s sub of one, j log of one, e other op on columns, r root on them,
-- p power, x exp, h tanh, q erf, L log, g neg, C cat, f op on two tensors of one shape, w op with a
-- vector as long as the last dimension, b mul with a tensor of another shape, n op with a scalar,
-- l anything else that computes long, . the rest. Views, casts, copies and fills have none.
WITH shaped AS (
    SELECT
        rank,
        pid,
        tid,
        place,
        input_shapes,
        output_shapes ->> '$[0]' AS output,
        family,
        regexp_replace(name, '^aten::_*|_$', '', 'g') AS op,
        if(
            name = 'aten::einsum', input_shapes ->> '$[1][0]', input_shapes ->> '$[0]'
        ) AS left_shape,
        nullif(input_shapes ->> '$[1]', '[]') AS right_shape
    FROM op_calls
    WHERE
        starts_with(name, 'aten::')
        AND NOT by_autograd
        AND phase IS DISTINCT FROM 'backward' AND phase IS DISTINCT FROM 'optimizer'
        AND NOT coalesce(compiled, FALSE) AND NOT coalesce(recomputed, FALSE)
        AND coalesce(family NOT IN ('view', 'cast', 'copy', 'fill'), TRUE)
        AND input_shapes IS NOT NULL AND output_shapes IS NOT NULL
),

sized AS (
    SELECT
        *,
        op IN ('add', 'sub', 'mul', 'div', 'rsub', 'where', 'maximum', 'minimum')
        AND right_shape IS NOT NULL AS is_binary,
        ends_with(output, ',1]') AS is_column,
        coalesce(
            op IN ('sub', 'mul', 'div') AND output IN (left_shape, right_shape)
            AND regexp_replace(output, '[0-9]+\]$', '1]') IN (left_shape, right_shape),
            FALSE
        ) AS takes_column,
        '[' || regexp_extract(output, '([0-9]+)\]$', 1) || ']' AS vector_shape
    FROM shaped
),

lettered AS (
    SELECT
        *,
        CASE
            WHEN op IN ('matmul', 'bmm', 'baddbmm', 'einsum', 'mm') THEN 'Q'
            WHEN family IN ('matmul', 'convolution', 'attention') THEN 'l'
            WHEN op IN ('softmax', 'safe_softmax') THEN 'O'
            WHEN op = 'log_softmax' THEN 'P'
            WHEN op = 'sigmoid' THEN 'S'
            WHEN op = 'mean' AND is_column THEN 'm'
            WHEN op IN ('var', 'std', 'var_mean', 'std_mean') AND is_column THEN 'v'
            WHEN op IN ('max', 'amax') AND is_column THEN 'k'
            WHEN op = 'sum' THEN 'a'
            WHEN op IN ('rsqrt', 'sqrt') AND is_column THEN 'r'
            WHEN op = 'log' AND is_column THEN 'j'
            WHEN is_column THEN 'e'
            WHEN takes_column AND op = 'sub' THEN 's'
            WHEN takes_column AND op IN ('mul', 'div') THEN 'd'
            WHEN op IN ('pow', 'square') THEN 'p'
            WHEN op = 'exp' THEN 'x'
            WHEN op = 'tanh' THEN 'h'
            WHEN op = 'erf' THEN 'q'
            WHEN op = 'log' THEN 'L'
            WHEN op = 'neg' THEN 'g'
            WHEN op = 'cat' THEN 'C'
            WHEN is_binary AND left_shape = right_shape THEN 'f'
            WHEN is_binary AND vector_shape IN (left_shape, right_shape) THEN 'w'
            WHEN is_binary AND op = 'mul' THEN 'b'
            WHEN op IN ('add', 'sub', 'mul', 'div', 'rsub') AND output = left_shape THEN 'n'
            ELSE '.'
        END AS letter
    FROM sized
),

numbered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY rank, pid, tid ORDER BY place ASC) AS position
    FROM lettered
),

threads AS (
    SELECT
        rank,
        pid,
        tid,
        string_agg(letter, '' ORDER BY position ASC) AS letters
    FROM numbered
    GROUP BY rank, pid, tid
),

grammar AS (
    SELECT
        listed.pattern,
        listed.expression
    FROM (
        VALUES
        ('attention', 'Q[^QOl]{0,12}O[^QOl]{0,4}Q'),
        ('norm', '(?:[pmvs]|fm)[pmvswer]*[rvm]e*s?w?e*dw{0,2}'),
        ('softmax', '(?:ks)?x[fw]?ae?d'),
        ('gelu', 'n{0,2}(?:p|ff)nfn{1,2}hnn?f|n{1,2}qnn?f'),
        ('cross_entropy', 'OL|P[fgn]{1,3}a'),
        ('log_softmax', '(?:ks)?xajs'),
        ('binary_cross_entropy', 'S[n.]{0,3}L[nfg.]{1,6}L[fg]{1,3}'),
        ('rotary_embedding', '[bfw]gC[bfw]f|[bfw]{2}f[bfw]{2}fC')
    ) AS listed (pattern, expression)
),

pieces AS (
    SELECT
        t.rank,
        t.pid,
        t.tid,
        g.pattern,
        unnest(regexp_extract_all(t.letters, g.expression)) AS letters,
        unnest(string_split_regex(t.letters, g.expression)[:-2]) AS between,
        generate_subscripts(regexp_extract_all(t.letters, g.expression), 1) AS number
    FROM threads AS t
    CROSS JOIN grammar AS g
    WHERE regexp_matches(t.letters, g.expression)
),

found AS (
    SELECT
        *,
        sum(length(between) + length(letters)) OVER (
            PARTITION BY rank, pid, tid, pattern ORDER BY number ASC
        )::BIGINT AS last_position
    FROM pieces
),

measured AS (
    SELECT
        f.rank,
        f.pid,
        f.tid,
        f.pattern,
        f.letters,
        f.number,
        min(n.place) AS first_place,
        max(n.place) AS last_place,
        arg_min(n.input_shapes, n.place) AS inputs,
        arg_min(n.output, n.place) FILTER (WHERE n.letter = 'Q') AS product_shape,
        arg_max(n.left_shape, n.place) FILTER (WHERE n.letter = 'Q') AS read_shape,
        max(n.output) FILTER (WHERE n.letter IN ('O', 'P')) AS softmax_shape,
        arg_max(n.output, n.place) AS output,
        count(DISTINCT n.output) FILTER (WHERE NOT n.is_column AND n.letter NOT IN ('g', 'a'))
            AS outputs
    FROM found AS f
    INNER JOIN numbered AS n
        ON
            f.rank = n.rank AND f.pid IS NOT DISTINCT FROM n.pid
            AND f.tid IS NOT DISTINCT FROM n.tid
            AND n.position BETWEEN f.last_position - length(f.letters) + 1 AND f.last_position
    GROUP BY ALL
)

SELECT
    rank,
    CASE
        WHEN pattern = 'norm' THEN if(regexp_matches(letters, '[sv]'), 'layer_norm', 'rms_norm')
        ELSE pattern
    END AS pattern,
    pid,
    tid,
    first_place,
    last_place,
    letters,
    coalesce(softmax_shape, output) AS shape,
    inputs
FROM measured
WHERE
    CASE pattern
        WHEN 'attention'
            THEN
                regexp_extract(product_shape, '[0-9]+,[0-9]+\]$')
                = regexp_extract(softmax_shape, '[0-9]+,[0-9]+\]$')
                AND regexp_extract(read_shape, '[0-9]+,[0-9]+\]$')
                = regexp_extract(softmax_shape, '[0-9]+,[0-9]+\]$')
                AND list_product(read_shape::BIGINT[]) = list_product(softmax_shape::BIGINT[])
        WHEN 'norm' THEN outputs = 1 AND regexp_matches(letters, '[mv]')
        WHEN 'cross_entropy' THEN TRUE
        WHEN 'rotary_embedding' THEN outputs <= 2
        ELSE outputs = 1
    END
ORDER BY rank ASC, pid ASC, tid ASC, first_place ASC
