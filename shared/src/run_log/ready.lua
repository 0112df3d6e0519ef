-- Tries each command of append.lua. KEYS[1]: a stream and a channel of that name. ARGV[1]: the command that
-- publishes.
redis.call('XADD', KEYS[1], 'MAXLEN', 1, '*', 'e', '')
redis.call('PEXPIRE', KEYS[1], 60000)
redis.call(ARGV[1], KEYS[1], '')
return 1
