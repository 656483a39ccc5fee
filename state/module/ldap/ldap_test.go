package ldap

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/ldap"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

type directory map[string]map[string][]string

// openldap simulates ldapsearch and ldapmodify. The directory is the file /directory.
func openldap(t *testing.T, h *statetest.Host) {
	read := func() directory {
		d := directory{}
		data, _ := h.Files.ReadFile("/directory") // missing before the first entry
		_ = json.Unmarshal(data, &d)
		return d
	}
	login := func(args []string, stdin string) error {
		if slices.Contains(args, "ldap://nowhere") {
			return statetest.Exit{Code: 255, Text: "ldap_sasl_bind(SIMPLE): Can't contact LDAP server (-1)"}
		}
		if line := strings.Join(args, " "); strings.Contains(line, "s3cret") {
			t.Errorf("a password is on the command line: %s", line)
		}
		if !slices.Contains(args, "-D") {
			return nil
		}
		at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-y") })
		password := stdin
		if file := args[at][2:]; file != "/dev/stdin" {
			data, err := h.Files.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			password = string(data)
		}
		if password != "s3cret" {
			return statetest.Exit{Code: 49, Text: "ldap_bind: Invalid credentials (49)"}
		}
		return nil
	}
	h.Provide(t, map[string]statetest.Program{
		"ldapsearch": func(args []string, c host.Command) (string, error) {
			if err := login(args, c.Stdin); err != nil {
				return "", err
			}
			dn := args[slices.Index(args, "-b")+1]
			attributes, ok := read()[dn]
			if !ok {
				return "", statetest.Exit{Code: 32, Text: "No such object (32)"}
			}
			text := "dn: " + dn + "\n"
			for name, values := range attributes {
				for _, v := range values {
					text += name + ":: " + base64.StdEncoding.EncodeToString([]byte(v)) + "\n"
				}
			}
			return text + "\n# refldap://other\n", nil
		},
		"ldapmodify": func(args []string, c host.Command) (string, error) {
			if err := login(args, ""); err != nil {
				return "", err
			}
			d := read()
			if err := d.change(c.Stdin); err != nil {
				return "", err
			}
			data, err := json.Marshal(d)
			h.Build(t, statetest.Tree{"/directory": statetest.File(string(data))})
			return "", err
		},
	})
}

// change makes a change in LDIF.
func (d directory) change(ldif string) error {
	var dn, kind string
	for line := range strings.Lines(ldif) {
		name, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if encoded, ok := strings.CutPrefix(v, ": "); ok {
			data, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				return err
			}
			v = string(data)
		} else {
			v = strings.TrimPrefix(v, " ")
		}
		switch name {
		case "dn":
			dn = v
		case "changetype":
			if kind = v; kind == "add" {
				d[dn] = map[string][]string{}
			} else if kind == "delete" {
				delete(d, dn)
			}
		case "-":
		case "replace":
			delete(d[dn], v)
		case "forbidden":
			delete(d, dn)
			return statetest.Exit{Code: 65, Text: "ldap_add: Object class violation (65)"}
		default:
			d[dn][name] = append(d[dn][name], v)
		}
	}
	return nil
}

func TestLDAP(t *testing.T) {
	clienttest.Run(t, "ldap", Functions(), openldap)
}

// TestActiveDirectory checks how passwords of Active Directory are written; it never returns them.
func TestActiveDirectory(t *testing.T) {
	given := ldap.Attributes{"UnicodePwd": {"aü"}, "cn": {"a"}}
	if got := forActiveDirectory(given)["UnicodePwd"][0]; got != "\"\x00a\x00\xfc\x00\"\x00" {
		t.Errorf("the password is %q", got)
	}
}
