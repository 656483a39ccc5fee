package sshkey_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line string
		want sshkey.Key
		ok   bool
	}{
		{"ssh-rsa AAAA", sshkey.Key{Kind: "ssh-rsa", Text: "AAAA"}, true},
		{" ssh-rsa\tAAAA  a  b ", sshkey.Key{Kind: "ssh-rsa", Text: "AAAA", Comment: "a b"}, true},
		{"sk-ssh-ed25519@openssh.com AAAA x",
			sshkey.Key{Kind: "sk-ssh-ed25519@openssh.com", Text: "AAAA", Comment: "x"}, true},
		{`command="ssh-rsa \"x\" y",no-pty ssh-rsa AAAA`,
			sshkey.Key{Options: `command="ssh-rsa \"x\" y",no-pty`, Kind: "ssh-rsa", Text: "AAAA"}, true},
		{`command="open ssh-rsa AAAA`, sshkey.Key{}, false},
		{"# ssh-rsa AAAA", sshkey.Key{}, false},
		{"ssh-rsa", sshkey.Key{}, false},
		{"AAAA comment", sshkey.Key{}, false},
		{"", sshkey.Key{}, false},
	} {
		got, ok := sshkey.Parse(c.line)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%q is %+v, %v, want %+v, %v", c.line, got, ok, c.want, c.ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{"ssh-rsa AAAA a b", `a="b c",d ecdsa-sha2-nistp256 AAAA`, `"`, `\"`, "x ssh-",
		"ssh-rsa  \t AAAA\t#"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		k, ok := sshkey.Parse(line)
		if !ok || strings.ContainsAny(line, "\n\r") {
			return
		}
		if again, ok := sshkey.Parse(k.String()); !ok || again != k {
			t.Errorf("%q is %+v, and its text is parsed as %+v, %v", line, k, again, ok)
		}
		if (k.Valid() == nil) != (sshkey.Fingerprint(k.Text, 5) != "" && k.Text != "") {
			t.Errorf("%+v: %v, fingerprint %q", k, k.Valid(), sshkey.Fingerprint(k.Text, 5))
		}
	})
}

func TestKeyTypeOption(t *testing.T) {
	for enc, want := range map[string]string{"rsa": "ssh-rsa", "e": "ecdsa-sha2-nistp256",
		"ed25519": "ssh-ed25519", "dss": "ssh-dss",
		"ecdsa-sha2-nistp521": "ecdsa-sha2-nistp521", "ssh-rsa-cert-v01@openssh.com": "ssh-rsa-cert-v01@openssh.com"} {
		if got, err := sshkey.KindNamed(enc); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", enc, got, err, want)
		}
	}
	if _, err := sshkey.KindNamed("ssh-ed25591"); err == nil || !strings.Contains(diag.HintOf(err), "ssh-ed25519") {
		t.Errorf("a misspelled type: %v (hint: %s)", err, diag.HintOf(err))
	}
}

func TestPath(t *testing.T) {
	u := host.User{Name: "alice", Home: "/home/alice"}
	for config, want := range map[string]string{".ssh/authorized_keys": "/home/alice/.ssh/authorized_keys",
		"%h/k": "/home/alice/k", "/etc/keys/%u": "/etc/keys/alice",
		"/etc/%%": "/etc/%", "../../etc/x": "/etc/x"} {
		if got, err := sshkey.Path(u, config); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", config, got, err, want)
		}
	}
	for _, config := range []string{"%", "a%x"} {
		if got, err := sshkey.Path(u, config); err == nil {
			t.Errorf("%s is %s", config, got)
		}
	}
}

func TestFingerprint(t *testing.T) {
	const key = "AAAAB3NzaC1yc2EAAAADAQABAAAAAQA="
	for hash, want := range map[string]string{
		"":       "3e:96:1b:da:30:16:08:63:3d:b0:ff:6a:db:1f:4b:4b:55:00:26:85:3f:b5:b3:f6:e0:fe:fb:91:76:a3:56:2a",
		"md5":    "20:a8:05:75:13:bb:23:f3:86:7c:01:49:4a:98:66:0a",
		"SHA1":   "16:52:0a:77:8a:04:88:57:26:a1:fb:d5:12:65:93:02:59:15:83:5b",
		"sha224": "",
	} {
		with, err := sshkey.HashNamed(hash)
		if err != nil {
			t.Fatal(err)
		}
		if got := sshkey.Fingerprint(key, with); want != "" && got != want || len(got) != with.Size()*3-1 {
			t.Errorf("%s is %s, want %s", hash, got, want)
		}
	}
}
