package pdbedit

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"unicode/utf16"

	//nolint:staticcheck // what Samba compares passwords by
	"golang.org/x/crypto/md4"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// account is what pdbedit tells of an account, by its labels in lower case.
type account map[string]string

// database remembers the accounts as long as Samba's file is the same that they were read from.
type database struct {
	mu   sync.Mutex
	as   host.Info
	all  map[string]account
	read bool
}

// accounts are all of Samba's accounts by name.
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
		return nil, host.Failed(err, "reading Samba's accounts",
			"run `testparm` on the host: the configuration of Samba says where they are")
	}
	d.all, d.as, d.read = parse(out), as, true
	return d.all, nil
}

// parse reads the listing: for each account lines of a label, a colon and a value, and a line of dashes
// between two.
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

// hash is how Samba keeps a password.
func hash(password string) string {
	sum := md4.New()
	for _, unit := range utf16.Encode([]rune(password)) {
		sum.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return strings.ToUpper(hex.EncodeToString(sum.Sum(nil)))
}
