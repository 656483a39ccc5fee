package pdbedit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/pdbedit"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// prepare adds a simulated pdbedit, which keeps its listing in Samba's file of accounts.
func prepare(t *testing.T, h *statetest.Host) {
	const file = "/var/lib/samba/private/passdb.tdb"
	labels := map[string]string{
		"--fullname": "Full Name", "--drive": "HomeDir Drive", "--homedir": "Home Directory", "--set-nt-hash": "NT hash",
		"--account-control": "Account Flags", "--domain": "Domain",
	}
	set := func(label, v string) {
		lines := strings.Split(h.Text(file), "\n")
		for i, l := range lines {
			if strings.HasPrefix(l, label+":") {
				lines[i] = label + ": " + v
			}
		}
		h.Put(file, strings.Join(lines, "\n"))
	}
	statetest.UseTools(t, h, map[string]statetest.Tool{"pdbedit": func(args []string, stdin string) (string, error) {
		switch args[0] {
		case "--list":
			return h.Text(file), nil
		case "--delete":
			h.Put(file, "")
		case "--create":
			name := strings.TrimPrefix(args[1], "--user=")
			if name == "nobody2" {
				return "", statetest.Code{Code: 255, Text: "Failed to add entry for user nobody2."}
			}
			password, _, _ := strings.Cut(stdin, "\n")
			hash := map[string]string{"secret": "878D8014606CDA29677A44EFA1353FC7",
				"": "31D6CFE0D16AE931B73C59D7E0C089C0"}[password]
			h.Put(file,
				fmt.Sprintf("---------------\nUnix username: %s\nAccount Flags: [U          ]\nUser SID: S-1-5-21-1000\nFull "+
					"Name:\nHome Directory: \\\\VM\\x\nHomeDir Drive:\nDomain: VM\nBad password count : 3\nLogon hours : FF00\n"+
					"NT hash: %s\n", name, hash))
		case "--modify":
			for _, arg := range args[2:] {
				option, v, _ := strings.Cut(arg, "=")
				if sid, ok := strings.CutPrefix(arg, "-U"); ok {
					set("User SID", sid)
					continue
				}
				switch option {
				case "--logon-hours-reset":
					set("Logon hours ", "FFFF")
				case "--bad-password-count-reset":
					set("Bad password count ", "0")
				default:
					set(labels[option], v)
				}
			}
		}
		return "", nil
	}, "smbpasswd": func(_ []string, stdin string) (string, error) {
		password, _, _ := strings.Cut(stdin, "\n")
		set("NT hash", map[string]string{"secret": "878D8014606CDA29677A44EFA1353FC7"}[password])
		return "", nil
	}})
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "pdbedit",
		Functions: func(*statetest.Host) module.Table { return pdbedit.Functions() },
		Prepare:   prepare,
		Cases:     statetest.Load(t, "../../../testdata/modules/system/pdbedit.yaml"),
	})
}
