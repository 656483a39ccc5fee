package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/doctor"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// examineKeys adds findings about private keys that do not work, that other users of this machine may read, or that are
// missing.
func (p *program) examineKeys(found *doctor.Findings) {
	if p.keys == "" {
		found.Skip("keys", "no --keys were given")
		return
	}
	entries, err := os.ReadDir(p.keys)
	if err != nil {
		found.Error("keys", diag.Keys, err, "correct --keys, or make keys: corpus keys new --keys "+p.keys)
		return
	}
	ring := keyring.Ring{Dir: p.keys, Env: p.Getenv}
	all, good, encrypted := 0, 0, 0
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".key" {
			continue
		}
		all++
		ok, sealed := examineKey(found, ring, filepath.Join(p.keys, e.Name()))
		if sealed {
			encrypted++
		}
		if ok {
			good++
		}
	}
	if all == 0 {
		found.Skip("keys", "%s has no private keys", p.keys)
		return
	}
	if good == all {
		text := diag.Count(all, "private key") + " in " + p.keys + " can be read, by the owner alone"
		if encrypted > 0 {
			text += fmt.Sprintf("; %d encrypted and not opened", encrypted)
		}
		found.OK("keys", "%s", text)
	}
	missingKeys(found, ring)
}

// examineKey adds findings about a private key file. ok reports that there are none.
func examineKey(found *doctor.Findings, ring keyring.Ring, file string) (ok, encrypted bool) {
	key, err := keyring.Inspect(file)
	switch {
	case err != nil:
		found.Error("keys", diag.Keys, err, "bring the file back from a backup")
	case key.Mode&0o077 != 0:
		found.Warn("keys", diag.Keys,
			fmt.Sprintf("chmod 600 %s; if another user may have read it: corpus keys rotate %s", file,
				ring.RoleOf(file)), "other users of this machine may read %s (mode %04o)", file, key.Mode)
	default:
		ok = true
	}
	return ok, key.Encrypted
}

// missingKeys adds findings about roles without a key whose signature every change of the store needs.
func missingKeys(found *doctor.Findings, ring keyring.Ring) {
	for _, role := range []string{tuf.RoleSnapshot, tuf.RoleTimestamp} {
		if !ring.Has(role) {
			err := ring.Missing(role)
			found.Warn("keys", diag.Keys, cmp.Or(diag.HintOf(err), "give --keys the directory that has it"),
				"%v: publish, point and refresh cannot sign with these keys", err)
		}
	}
}
