-- +++
-- title = "Trace health: {check_name}"
-- question = "Is this trace fit to judge?"
-- severity = "warning"
-- health = true
-- needs = []
-- message = "{message}"
-- advice = "{fix}"
-- key = ["rank", "check_name"]
-- proof = "SELECT * FROM health WHERE rank = {rank} AND check_name = {check_name}"
-- reference = "https://docs.pytorch.org/docs/stable/profiler.html"
--
-- [columns]
-- value = "What was found."
-- threshold = "What is expected of a trace that can be judged."
-- severity = "critical where the check is bad, warning where it warns."
-- rank = "Distributed rank."
-- check_name = "What was checked."
-- message = "The finding in words."
-- confidence = "Always high: a fact of the file."
-- fix = "What to do about it."
-- +++
-- A trace that lost events, was cut, or saw device work in a few of its steps only can say
-- anything. A bad check means: do not act on the other findings. A warning means: read them with it
-- in mind.
--
-- Each check is a row of the view `health`, the passed ones too.
SELECT
    value,
    threshold,
    rank,
    check_name,
    message,
    'high' AS confidence,
    CASE status WHEN 'bad' THEN 'critical' ELSE 'warning' END AS severity,
    CASE status
        WHEN 'bad' THEN 'Do not act on any other finding of this trace.'
        ELSE 'Read the other findings with this in mind.'
    END AS fix
FROM health
WHERE status IN ('bad', 'warn')
ORDER BY status ASC, rank ASC, check_name ASC
