package families

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/sshauth"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// accountFunctions returns the functions that read crontabs and authorized keys. They use the code of those states.
func accountFunctions(h *host.Host) function.Table {
	crontab := function.Of("user", func(ctx context.Context, user string) (string, error) {
		return h.Crontabs.Read(ctx, user)
	})
	keys := function.Of("user=None, config='.ssh/authorized_keys', fingerprint_hash_type=None",
		func(user, config, hash string) (*value.Map, error) {
			return sshauth.Keys(h, user, config, hash)
		})
	return function.Table{"cron.raw_cron": crontab, "ssh.auth_keys": keys}
}
