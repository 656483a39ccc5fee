//go:build hosts

package hosttest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// serverAddress is the address of the node with the LDAP server.
const serverAddress = "172.31.0.11"

// ldapServer is the pillar of the node: the users are those of the cloud.
const ldapServer = "tools: {slapd: true}\nldap:\n  certificate: |\nCERTIFICATE  key: |\nKEY"

// TestAccessOfUsersToProjects grants two users access to different projects of a cloud, with corpus access alone. They
// log in to hosts of theirs by ssh and by su, run there as root what they may, and are refused by the other project.
func TestAccessOfUsersToProjects(t *testing.T) {
	for _, suite := range lab.Suites() {
		t.Run(suite, func(t *testing.T) { accesses(t, suite) })
	}
}

func accesses(t *testing.T, suite string) {
	s, n := newStore(t), lab.NewNetwork(t)
	certificate, key := selfSigned(t)
	cloudTree := filepath.Join(t.TempDir(), "cloud")
	s.corpus("init", cloudTree, "--kind", "cloud")
	s.publish("cloud", "1", "prod", cloudTree, tree(t, map[string]string{ // a node without guests
		"salt/config/states/top.sls": "base:\n  '*': [check, hosts, firewall]\n"}))
	s.corpus("node", "add", "n1", "--mode", "prod", "--region", "eu1", "--address", serverAddress, "--yes")
	keys := map[string]string{}
	for _, user := range []string{"alice", "bob"} {
		keys[user] = filepath.Join(t.TempDir(), user)
		run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", user, "-f", keys[user])
	}
	s.corpus("access", "grant", "alice", "shop", "--ssh-key", keys["alice"]+".pub", "--sudo", "/usr/bin/id", "--yes")
	s.corpus("access", "grant", "bob", "blog", "--ssh-key", keys["bob"]+".pub", "--sudo", "ALL", "--yes")
	s.publish("base", "1", "production", repository+"/packaging/trees/base", tree(t, map[string]string{
		"corpus.yaml":    "name: base\nallow_secrets: [{path: pillar/server.sls, rule: private-key, reason: a test}]\n",
		"pillar/top.sls": "base:\n  '*': [all]\n  'cloud-*': [server]\n",
		"pillar/all.sls": "tools: {sssd: true}\nldap:\n  base: dc=example,dc=org\n  server: ldap://" + serverAddress +
			"\n  ca: |\n" + indented(certificate),
		"pillar/server.sls": strings.NewReplacer("CERTIFICATE", indented(certificate), "KEY", indented(key)).
			Replace(ldapServer)}))
	for _, project := range []string{"shop", "blog"} {
		s.publish(project, "1", "prod", tree(t, map[string]string{"corpus.yaml": "name: " + project + "\n",
			"salt/config/states/top.sls": "base: {}\n"}))
	}
	server := s.serve(n)
	host := func(name, number string) *lab.Host {
		h := lab.Boot(t, lab.Options{Base: tooled(suite), Hostname: name, Network: n, Address: "172.31.0.1" + number})
		install(t, h)
		s.reach(h, server)
		h.Write("/etc/corpus/agent.yaml", "store: "+storeURL+"\ntop: merge\n")
		return h
	}
	node := host("cloud-prod-eu1-n1", "1")
	shop, blog := host("shop-prod-eu1-web1", "2"), host("blog-prod-eu1-web2", "3")
	for _, h := range []*lab.Host{node, shop, blog} {
		agent(t, h, "deploy", "--trust-root", "/root/root.json").converged(t)
		if again := agent(t, h, "converge").converged(t); again.States.Changed != 0 {
			t.Errorf("the second run changed the host:\n%s", changed(again))
		}
	}
	a := &access{t: t, from: node, hosts: map[string]*lab.Host{"shop": shop, "blog": blog},
		addresses: map[string]string{"shop": "172.31.0.12", "blog": "172.31.0.13"}}
	for user, file := range keys {
		node.Copy(file, "/root/"+user)
		node.Sh("chmod 600 /root/" + user)
	}
	a.check()
	s.corpus("access", "grant", "alice", "blog", "--yes")
	s.corpus("access", "revoke", "bob", "blog", "--yes")
	agent(t, node, "deploy").converged(t)
	blog.Sh("sss_cache -E")
	a.says("alice", "blog", "id -un", "alice", true)
	a.says("alice", "blog", "sudo -n /usr/bin/id -u", "", false)
	a.says("alice", "shop", "sudo -n /usr/bin/id -u", "0", true)
	a.says("bob", "blog", "id -un", "", false)
}

// access logs in to hosts of projects.
type access struct {
	t         *testing.T
	from      *lab.Host
	hosts     map[string]*lab.Host
	addresses map[string]string
}

// says runs a command in a session of a user on a host of a project, by ssh and by su.
func (a *access) says(user, project, command, want string, allowed bool) {
	a.t.Helper()
	ssh := a.from.Run("ssh", "-i", "/root/"+user, "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes",
		user+"@"+a.addresses[project], command)
	su := a.hosts[project].Run("su", "-", user, "-c", command)
	for how, r := range map[string]lab.Result{"ssh": ssh, "su": su} {
		if ok := r.Code == 0; ok != allowed || allowed && strings.TrimSpace(r.Out) != want {
			a.t.Errorf("%s of %s on %s: %s gives %d %q %q", how, user, project, command, r.Code, r.Out, r.Err)
		}
	}
}

func (a *access) check() {
	a.t.Helper()
	a.says("alice", "shop", "id -un; pwd", "alice\n/home/alice", true)
	a.says("alice", "shop", "sudo -n /usr/bin/id -u", "0", true)
	a.says("alice", "shop", "sudo -n /usr/bin/cat /etc/shadow", "", false)
	a.says("alice", "blog", "id -un", "", false)
	a.says("bob", "blog", "sudo -n /usr/bin/whoami", "root", true)
	a.says("bob", "shop", "id -un", "", false)
	for project, user := range map[string]string{"shop": "bob", "blog": "alice"} {
		if out := a.hosts[project].Run("sudo", "-l", "-U", user).Out; !strings.Contains(out, "not allowed to run sudo") {
			a.t.Errorf("sudo of %s on %s: %s", user, project, out)
		}
	}
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// selfSigned returns a certificate of the server, which is its own authority, and its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ldap"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.ParseIP(serverAddress)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}
