-- Appends the events first..last of one attempt as one stream entry, whose id is the last of them.
-- KEYS[1] the run's stream, and its channel's name; ARGV: attempt, first, last, "archived" or "refuse", lines, expiry in ms,
-- the number of entries behind which first comes next, or "", and "renew" where the expiry is to be set anew.
-- Answers the number of entries, "stored" if it had the events, "fenced" or "behind". One key only: two keys can be lost apart.
local id, lines = ARGV[1] .. '-' .. ARGV[3], ARGV[5]
-- Who has appended last and finds as many entries as it left need not look at them.
if redis.call('XLEN', KEYS[1]) == tonumber(ARGV[7]) and not redis.pcall('XADD', KEYS[1], id, 'e', lines).err then
  if ARGV[8] == 'renew' then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
  redis.call('PUBLISH', KEYS[1], lines)
  return ARGV[7] + 1
end
local attempt, first, last = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local a, n = 0, 0
if newest then
  local dash = string.find(newest[1], '-', 1, true)
  a, n = tonumber(string.sub(newest[1], 1, dash - 1)), tonumber(string.sub(newest[1], dash + 1))
end
if a > attempt then return 'fenced' end
local next_n = 1
if a == attempt then next_n = n + 1 end
if last < next_n then return 'stored' end
if first > next_n and ARGV[4] == 'refuse' then return 'behind' end
-- A retried append may have been stored in part: drop the lines that the log has.
for _ = first, next_n - 1 do
  lines = string.sub(lines, string.find(lines, '\n', 1, true) + 1)
end
redis.call('XADD', KEYS[1], id, 'e', lines)
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('PUBLISH', KEYS[1], lines)
return redis.call('XLEN', KEYS[1])
