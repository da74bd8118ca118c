-- ARGV: deadline, largest number seen, task.
local entry = load_entry(ARGV[3])
if not entry then return answer_with({ 'absent' }) end
remove_entry(entry)
return answer_with({ 'ok' })
