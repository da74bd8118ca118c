-- ARGV: installation, deadline, largest number seen, task, token, delay in microseconds.
promote()
local entry = claimed_entry(ARGV[4], ARGV[5])
if not entry then return answer_with({ 'lost' }) end
local sequence = next_number('number')
change(entry, { claimable = time_after(ARGV[6]), tag = false, sequence = sequence, token = 0 })
promote()
refresh(entry.flow)
wake_claims()
return answer_with({ 'ok' })
