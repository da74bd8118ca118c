-- ARGV: installation, deadline, largest number seen, task.
local entry = load_entry(ARGV[4])
if not entry then return answer_with({ 'absent' }) end
remove_entry(entry)
return answer_with({ 'ok' })
