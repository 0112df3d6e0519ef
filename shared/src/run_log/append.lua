-- Appends the events first..last of one attempt as one stream entry, whose id is the last event's.
-- KEYS[1]: the run's stream, which is also the name of its channel.
-- ARGV[1], [2] and [3]: attempt, first and last. ARGV[4]: "archived" or "refuse". ARGV[5]: the lines.
-- ARGV[6]: the expiry in ms. ARGV[7]: the number of entries after which first is next, or "".
-- ARGV[8]: "renew" to set the expiry again. ARGV[9]: the command that publishes.
-- Returns the number of entries, "stored" if the stream has the events, "fenced" or "behind".
-- There is one key only, because Redis can lose two keys separately.
local id, lines = ARGV[1] .. '-' .. ARGV[3], ARGV[5]
-- A writer that finds the number of entries of its last append need not read them.
if redis.call('XLEN', KEYS[1]) == tonumber(ARGV[7]) and not redis.pcall('XADD', KEYS[1], id, 'e', lines).err then
  if ARGV[8] == 'renew' then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
  redis.call(ARGV[9], KEYS[1], lines)
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
-- A retried append may be stored in part, so the script drops the lines that the stream has.
for _ = first, next_n - 1 do
  lines = string.sub(lines, string.find(lines, '\n', 1, true) + 1)
end
redis.call('XADD', KEYS[1], id, 'e', lines)
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call(ARGV[9], KEYS[1], lines)
return redis.call('XLEN', KEYS[1])
