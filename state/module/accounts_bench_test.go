package module_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const people = 400

// BenchmarkNoChange checks a user, its group, its key, its job and its host name for 400 users without any
// difference. It measures the cost of a run that has nothing to do.
func BenchmarkNoChange(b *testing.B) {
	root := b.TempDir()
	populate(b, root)
	tables := accountStates()
	for _, state := range []string{"group", "user", "ssh_auth", "ssh_auth in one file", "cron", "host"} {
		b.Run(state, func(b *testing.B) {
			name, shared, _ := strings.Cut(state, " in ")
			b.ReportAllocs()
			for b.Loop() {
				h, err := machine.New(host.Options{Root: root, Commands: statetest.Commands(nil)})
				if err != nil {
					b.Fatal(err)
				}
				for i := range people {
					unchanged(b, h, tables[name]["present"], arguments(name, i, shared != ""))
				}
			}
		})
	}
}

func unchanged(b *testing.B, h *host.Host, resource func() module.Resource, arguments *value.Map) {
	r := resource()
	if _, problems := module.Decode(r, module.Call{Arguments: arguments, At: func(string) diag.Pos {
		return diag.Pos{}
	}}); len(problems) > 0 {
		b.Fatal(problems)
	}
	if diff, err := r.Check(context.Background(), h); err != nil || !diff.Empty() {
		b.Fatalf("%s: %s, %v", value.Repr(arguments), diff.Comment, err)
	}
}

func arguments(state string, i int, shared bool) *value.Map {
	name := fmt.Sprintf("u%d", i)
	switch state {
	case "group":
		return value.NewMap("name", name, "gid", 2000+i)
	case "user":
		return value.NewMap("name", name, "uid", 2000+i, "gid", name, "groups", value.Strings("users"), "fullname",
			"User", "shell", "/bin/sh",
			"password", "$6$a$b", "mindays", 0)
	case "ssh_auth":
		user := name
		if shared {
			user = "alice"
		}
		return value.NewMap("name", key(i), "user", user, "comment", name)
	case "cron":
		return value.NewMap("name", "/bin/"+name, "user", "root", "minute", 5)
	}
	return value.NewMap("name", name+".example", "ip", fmt.Sprintf("10.0.%d.%d", i/256, i%256))
}

func key(i int) string { return fmt.Sprintf("AAAAB3NzaC1yc2EAAAADAQABAAAAgQ%04dA=", i) }

// populate writes the files of 400 users.
func populate(b *testing.B, root string) {
	hosttest.Tree(b, root)
	var passwd, group, shadow, keys, tab, hosts strings.Builder
	tab.WriteString("# Lines below here are managed by Salt, do not edit\n")
	members := make([]string, people)
	for i := range people {
		name := fmt.Sprintf("u%d", i)
		members[i] = name
		fmt.Fprintf(&passwd, "%s:x:%d:%d:User:/home/%s:/bin/sh\n", name, 2000+i, 2000+i, name)
		fmt.Fprintf(&group, "%s:x:%d:\n", name, 2000+i)
		fmt.Fprintf(&shadow, "%s:$6$a$b:19000:0:99999:7:::\n", name)
		fmt.Fprintf(&keys, "ssh-rsa %s %s\n", key(i), name)
		fmt.Fprintf(&tab, "# SALT_CRON_IDENTIFIER:/bin/%s\n5 * * * * /bin/%s\n", name, name)
		fmt.Fprintf(&hosts, "10.0.%d.%d\t\t%s.example\n", i/256, i%256, name)
		hosttest.Put(b, filepath.Join(root, "home", name, ".ssh/authorized_keys"),
			fmt.Sprintf("ssh-rsa %s %s\n", key(i), name), 0o600)
	}
	fmt.Fprintf(&group, "users:x:100:%s\n", strings.Join(members, ","))
	passwd.WriteString("root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n")
	for file, text := range map[string]string{
		"etc/passwd": passwd.String(), "etc/group": group.String(), "etc/shadow": shadow.String(),
		"etc/hosts":                       hosts.String(),
		"home/alice/.ssh/authorized_keys": keys.String(), "var/spool/cron/crontabs/root": tab.String(), "usr/bin/crontab": "",
	} {
		hosttest.Put(b, filepath.Join(root, file), text, 0o755) // executable, since usr/bin/crontab is a program
	}
}
