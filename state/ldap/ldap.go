// Package ldap reads and changes directories of LDAP servers with the programs ldapsearch and ldapmodify of OpenLDAP.
// No command line has a password or a value of an entry.
package ldap

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
)

// Server is a server and the identity with which it is used. Without a mechanism or a DN the access is anonymous.
type Server struct {
	URL       string
	Mechanism string // of SASL, such as EXTERNAL; "" for a DN and a password
	DN        string
	Password  string
	StartTLS  bool
	Env       []string // settings of the client library, as in ldap.conf(5): LDAPTLS_CACERT=/etc/ca.pem
}

// NoSuchObject is the code of results for an entry that does not exist.
const NoSuchObject = 32

// Attributes are the attributes of an entry and their values, in the order of the server.
type Attributes map[string][]string

// Key returns the name of an attribute as the entry has it, since names are the same in upper and lower case.
func (a Attributes) Key(name string) string {
	for key := range a {
		if strings.EqualFold(key, name) {
			return key
		}
	}
	return name
}

// Names returns the names of the attributes in order.
func (a Attributes) Names() []string {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Entry is an entry and its DN.
type Entry struct {
	DN         string
	Attributes Attributes
}

// Search returns the entries that the arguments of ldapsearch choose. If the base does not exist, the error has the
// code NoSuchObject.
func (s Server) Search(ctx context.Context, h *host.Host, args ...string) ([]Entry, error) {
	args = append([]string{"-LLL", "-o", "ldif-wrap=no"}, args...)
	out, err := s.run(ctx, h, "ldapsearch", "/dev/stdin", s.Password, args...)
	if err != nil {
		return nil, err
	}
	return parse(out)
}

// parse parses LDIF, each line of which is a name and a value.
func parse(text string) (all []Entry, err error) {
	for _, line := range strings.Split(text, "\n") {
		name, v, ok := strings.Cut(line, ":")
		if encoded, is := strings.CutPrefix(v, ": "); is {
			var data []byte
			if data, err = base64.StdEncoding.DecodeString(encoded); err != nil {
				return nil, err
			}
			v = string(data)
		} else {
			v = strings.TrimPrefix(v, " ")
		}
		switch at := len(all) - 1; {
		case name == "dn":
			all = append(all, Entry{v, Attributes{}})
		case ok && at >= 0 && name != "ref" && name[0] != '#':
			all[at].Attributes[name] = append(all[at].Attributes[name], v)
		}
	}
	return all, nil
}

// Change adds, modifies or deletes an entry. If it modifies, the attributes are those to replace.
func (s Server) Change(ctx context.Context, h *host.Host, change, dn string, attributes Attributes) error {
	var b strings.Builder
	line(&b, "dn", dn)
	b.WriteString("changetype: " + change + "\n")
	for _, name := range attributes.Names() {
		if change == "modify" {
			b.WriteString("replace: " + name + "\n")
		}
		for _, v := range attributes[name] {
			line(&b, name, v)
		}
		if change == "modify" {
			b.WriteString("-\n")
		}
	}
	file := ""
	if s.DN != "" { // standard input is the change
		password, remove, err := h.TempFor("", "ldap", []byte(s.Password), 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = remove() }()
		file = password
	}
	_, err := s.run(ctx, h, "ldapmodify", file, b.String())
	return err
}

func line(b *strings.Builder, name, v string) {
	b.WriteString(name + ":: " + base64.StdEncoding.EncodeToString([]byte(v)) + "\n")
}

// ErrUnreachable is wrapped by errors of servers that do not answer.
var ErrUnreachable = errors.New("the LDAP server does not answer")

// Program is the program that reads entries.
func (s Server) Program() program.Program {
	return program.Program{Name: "ldapsearch", Package: "ldap-utils", Dir: "/", Env: s.Env, Limit: 5 * time.Minute,
		Hide: func(text string) string {
			if len(s.Password) > 2 {
				text = strings.ReplaceAll(text, s.Password, "<secret>")
			}
			return text
		}}
}

// run runs a program with the password in a file.
func (s Server) run(ctx context.Context, h *host.Host, name, file, input string, args ...string) (string, error) {
	p := s.Program()
	p.Name, p.Stdin = name, input
	args = append([]string{"-H", s.URL, "-o", "nettimeout=20"}, args...)
	switch {
	case s.Mechanism != "":
		args = append([]string{"-Q", "-Y", s.Mechanism}, args...)
	case s.DN != "":
		args = append([]string{"-x", "-D", s.DN, "-y" + file}, args...)
	default:
		args = append([]string{"-x"}, args...)
	}
	if s.StartTLS {
		args = append([]string{"-ZZ"}, args...)
	}
	do := p.Do
	if name == "ldapsearch" {
		do = p.Ask
	}
	out, err := do(ctx, h, args...)
	if err != nil && strings.Contains(err.Error(), "Can't contact LDAP server") {
		err = diag.Server.Hint(errors.Join(ErrUnreachable, err),
			"start it, in a service.running state that this one requires, or correct the URL %s", s.URL)
	}
	return out, err
}
