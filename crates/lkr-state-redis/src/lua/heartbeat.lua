-- ARGV: installation, deadline, largest number seen, task, token, lease in microseconds.
local entry = claimed_entry(ARGV[4], ARGV[5])
if not entry then return answer_with({ 'lost' }) end
local old = entry.claimable
change(entry, { claimable = time_after(ARGV[6]), tag = false })
refresh(entry.flow)
-- Waiting claims look again if the lease ends earlier now.
if entry.claimable > 0 and (old == 0 or entry.claimable < old) then wake_claims() end
return answer_with({ 'ok' })
