-- Returns the lines of the entries after ARGV[1], one string per entry, up to about ARGV[2] bytes.
-- KEYS[1]: the run's stream. XRANGE counts entries, which have one event or a thousand; so each turn reads twice as
-- many.
local after, wanted, count = ARGV[1], tonumber(ARGV[2]), 2
local lines = {}
while wanted > 0 do
  local entries = redis.call('XRANGE', KEYS[1], '(' .. after, '+', 'COUNT', count)
  for _, entry in ipairs(entries) do
    if wanted <= 0 then break end
    after = entry[1]
    lines[#lines + 1] = entry[2][2]
    wanted = wanted - #entry[2][2]
  end
  if #entries < count then break end
  count = count * 2
end
return lines
