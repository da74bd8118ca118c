-- ARGV: deadline, largest number seen, task, token.
local entry = claimed_entry(ARGV[3], ARGV[4])
if not entry then return answer_with({ 'lost' }) end
remove_entry(entry)
return answer_with({ 'ok' })
