package sshauth_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/sshauth"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// sources is a state tree in memory.
type sources map[string]string

func (s sources) Source(_ context.Context, url, _ string) ([]byte, error) {
	text, ok := s[url]
	if !ok {
		return nil, fmt.Errorf("%s is in no root", url)
	}
	return []byte(text), nil
}

func files() sources {
	return sources{
		"salt://two": "# team\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQD= first\n\nrestrict,command=\"a b\" ssh-rsa " +
			"AAAAB3NzaC1yc2EAAAADAQABAAAAAQE= second key\n",
		"salt://none":    "# nothing\n",
		"salt://private": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n",
	}
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "ssh_auth",
		Functions: func(*statetest.Host) module.Table { return sshauth.Functions(files()) },
		Prepare:   people,
		Cases:     statetest.Load(t, "../../../testdata/modules/account/ssh_auth.yaml"),
	})
}

const keyFile = "/home/alice/.ssh/authorized_keys"

// people adds the users of the cases to a host.
func people(t *testing.T, h *statetest.Host) {
	t.Helper()
	for i, name := range []string{"alice", "bob", "carol"} {
		h.Users.Users = append(h.Users.Users, host.User{Name: name, UID: 1000 + i, GID: 100, Home: "/home/" + name})
	}
	tree := statetest.Tree{"/home/alice": {Kind: "dir"}, "/home/carol": {Kind: "dir"}}
	if _, err := h.Files.Stat(keyFile); err != nil {
		keys := statetest.File("# mine\n\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQB= one@x\nssh-rsa " +
			"AAAAB3NzaC1yc2EAAAADAQABAAAAAQC= two\n")
		keys.Mode = "0640"
		tree[keyFile] = keys
	}
	h.Build(t, tree)
}

// TestKeys checks a user's keys as templates see them.
func TestKeys(t *testing.T) {
	h := statetest.NewHost(t)
	h.Users.Users = append(h.Users.Users, host.User{Name: "gu1", UID: 7001, Home: "/home/gu1"})
	h.Build(t, statetest.Tree{"/home/gu1/.ssh/authorized_keys": statetest.File(
		"# c\nno-pty ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f c@x\n" +
			"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQA= full@x\nssh-rsa not-a-key x\n")})
	got, err := sshauth.Keys(h.Host, "gu1", ".ssh/authorized_keys", "")
	if err != nil {
		t.Fatal(err)
	}
	want := value.NewMap(
		"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
		value.NewMap("enc", "ssh-ed25519", "comment", "c@x",
			"options", value.Strings("no-pty"), "fingerprint",
			"66:40:2c:94:68:c5:89:41:dd:19:ff:d6:50:bf:2b:42:f9:22:6f:83:d3:bd:06:ad:51:5d:0e:51:04:a7:70:20"),
		"AAAAB3NzaC1yc2EAAAADAQABAAAAAQA=", value.NewMap("enc", "ssh-rsa", "comment", "full@x", "options", value.NewList(),
			"fingerprint", "3e:96:1b:da:30:16:08:63:3d:b0:ff:6a:db:1f:4b:4b:55:00:26:85:3f:b5:b3:f6:e0:fe:fb:91:76:a3:56:2a"))
	if !value.Equal(got, want) {
		t.Errorf("keys are\n%s\nwant\n%s", value.Repr(got), value.Repr(want))
	}
	if none, err := sshauth.Keys(h.Host, "nobody", ".ssh/authorized_keys", ""); err != nil || none.Len() > 0 {
		t.Errorf("a user that does not exist has keys %s, %v", value.Repr(none), err)
	}
}

// TestLinksToFilesOfOtherUsersAreRefused checks that a user cannot make the agent write to a file of another user.
func TestLinksToFilesOfOtherUsersAreRefused(t *testing.T) {
	for _, link := range []string{"/home/alice/.ssh", keyFile} {
		t.Run(link, func(t *testing.T) {
			h := statetest.NewHost(t)
			h.Users.Users = append(h.Users.Users, host.User{Name: "alice", UID: 1000, GID: 100, Home: "/home/alice"})
			target := map[string]string{"/home/alice/.ssh": "/root/.ssh", keyFile: "/root/.ssh/authorized_keys"}[link]
			h.Build(t, statetest.Tree{"/root/.ssh/authorized_keys": statetest.File("ssh-rsa AAAA root\n"),
				link: {Kind: "link", Target: target, User: "alice"}})
			resource := sshauth.Functions(files())["present"]()
			arguments := value.NewMap("name", "AAAAB3Nz", "user", "alice")
			if _, problems := module.Decode(resource, module.Call{Arguments: arguments}); len(problems) > 0 {
				t.Fatal(problems)
			}
			diff, err := resource.Check(context.Background(), h.Host)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := resource.Apply(context.Background(), h.Host, diff); err == nil {
				t.Error("the agent wrote through a user's link")
			}
			h.Expect(t, statetest.Tree{"/root/.ssh/authorized_keys": statetest.File("ssh-rsa AAAA root\n")})
		})
	}
}
