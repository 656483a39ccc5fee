package pdbedit

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"unicode/utf16"

	//nolint:staticcheck // Samba compares passwords by this hash
	"golang.org/x/crypto/md4"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// account holds the fields of an account by pdbedit's labels in lower case.
type account map[string]string

// database caches the accounts as long as Samba's file does not change.
type database struct {
	mu   sync.Mutex
	as   host.Info
	all  map[string]account
	read bool
}

// accounts returns all accounts of Samba by name.
func (d *database) accounts(ctx context.Context, h *host.Host) (map[string]account, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	as, err := h.Files.Stat("/var/lib/samba/private/passdb.tdb")
	as.Accessed = as.Changed
	if d.read && err == nil && as == d.as {
		return d.all, nil
	}
	out, err := h.Tool(ctx,
		host.Tool{Argv: []string{"pdbedit", "--list", "--verbose", "--smbpasswd-style"}, Package: "samba"})
	if err != nil {
		return nil, host.Failed(diag.Account, err, "reading Samba's accounts",
			"run `testparm` on the host: the configuration of Samba says where they are")
	}
	d.all, d.as, d.read = parse(out), as, true
	return d.all, nil
}

// parse parses the listing: lines of label, colon and value for each account, separated by lines of dashes.
func parse(text string) map[string]account {
	all := map[string]account{}
	a := account{}
	for l := range strings.Lines(text + "---\n") {
		if strings.HasPrefix(l, "---") {
			if name := a["unix username"]; name != "" {
				all[name] = a
			}
			a = account{}
			continue
		}
		if label, v, ok := strings.Cut(l, ":"); ok {
			a[strings.ToLower(strings.TrimSpace(label))] = strings.TrimSpace(v)
		}
	}
	return all
}

// hash returns the NT hash of a password.
func hash(password string) string {
	sum := md4.New()
	for _, unit := range utf16.Encode([]rune(password)) {
		sum.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return strings.ToUpper(hex.EncodeToString(sum.Sum(nil)))
}
