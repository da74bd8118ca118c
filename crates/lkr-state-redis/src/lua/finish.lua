-- ARGV: installation, deadline, largest number seen, task, token.
local entry = claimed_entry(ARGV[4], ARGV[5])
if not entry then return answer_with({ 'lost' }) end
remove_entry(entry)
return answer_with({ 'ok' })
