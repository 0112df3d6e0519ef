-- Answers the lines of the entries after ARGV[1], each entry's as one string, until they have about ARGV[2] bytes.
-- KEYS[1] the run's stream. XRANGE itself counts entries, which may have one event or a thousand.
local entries_at_a_time = 32
local after, wanted = ARGV[1], tonumber(ARGV[2])
local lines = {}
repeat
  local entries = redis.call('XRANGE', KEYS[1], '(' .. after, '+', 'COUNT', entries_at_a_time)
  for _, entry in ipairs(entries) do
    if wanted <= 0 then return lines end
    after = entry[1]
    lines[#lines + 1] = entry[2][2]
    wanted = wanted - #entry[2][2]
  end
until #entries < entries_at_a_time
return lines
