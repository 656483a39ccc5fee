//go:build hosts && peers

package hosttest_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// peer is a program that converges a host at its first boot.
type peer struct {
	name    string
	prepare func(t *testing.T, h *lab.Host, s shape) // before the first boot
	start   string                                   // a line of shell, as user data would run it
}

// shape is what a host is to become.
type shape struct {
	name string
	port string
	unit string
	// salt and playbook are the same states for Salt (and this project) and for Ansible. Files are those they copy.
	salt, playbook string
	files          map[string]string
}

// bootShapes returns a service of files and a unit, and nginx from a package.
func bootShapes() []shape {
	return []shape{
		{"service", "8000", "app.service", serviceStates, servicePlay, map[string]string{
			"app.service": "[Service]\nUser=app\nExecStart=/usr/bin/python3 -m http.server -d /srv/app/www 8000\n" +
				"[Install]\nWantedBy=multi-user.target\n",
			"index.html": "serving on {{ PORT }}\n"}},
		{"nginx", "8080", "nginx.service", nginxStates, nginxPlay, map[string]string{
			"site.conf": "server { listen {{ PORT }}; root /srv/site; }\n", "index.html": "serving on {{ PORT }}\n"}},
	}
}

const serviceStates = `
app:
  user.present: [{system: true}, {home: /srv/app}, {createhome: false}]
/srv/app/www:
  file.directory: [{makedirs: true}]
/srv/app/www/index.html:
  file.managed: [{source: salt://index.html}, {template: jinja}, {context: {PORT: 8000}}]
/etc/systemd/system/app.service:
  file.managed: [{source: salt://app.service}]
app.service:
  service.running: [{name: app}, {enable: true}, {watch: [{file: /etc/systemd/system/app.service}]}]
`

const servicePlay = `
- hosts: localhost
  connection: local
  gather_facts: true
  vars: {PORT: 8000}
  tasks:
  - user: {name: app, system: true, home: /srv/app, create_home: false}
  - file: {path: /srv/app/www, state: directory}
  - template: {src: index.html, dest: /srv/app/www/index.html}
  - copy: {src: app.service, dest: /etc/systemd/system/app.service}
  - systemd: {name: app, state: started, enabled: true, daemon_reload: true}
`

const nginxStates = `
nginx:
  pkg.installed: []
/srv/site/index.html:
  file.managed: [{source: salt://index.html}, {makedirs: true}, {template: jinja}, {context: {PORT: 8080}}]
/etc/nginx/conf.d/site.conf:
  file.managed: [{source: salt://site.conf}, {template: jinja}, {context: {PORT: 8080}}, {require: [{pkg: nginx}]}]
run:
  service.running: [{name: nginx}, {enable: true}, {watch: [{file: /etc/nginx/conf.d/site.conf}]}]
`

const nginxPlay = `
- hosts: localhost
  connection: local
  gather_facts: true
  vars: {PORT: 8080}
  tasks:
  - apt: {name: nginx}
  - file: {path: /srv/site, state: directory}
  - template: {src: index.html, dest: /srv/site/index.html}
  - {template: {src: site.conf, dest: /etc/nginx/conf.d/site.conf}, register: conf}
  - systemd: {name: nginx, state: started, enabled: true}
  - {systemd: {name: nginx, state: restarted}, when: conf.changed}
`

// bootBase has the libraries of all peers, so that their hosts are the same.
func bootBase() lab.Base {
	b := lab.Standard("bookworm")
	b.Later = append(b.Later, "ansible-core", "git", "python3-apt", "python3-distro", "python3-jinja2",
		"python3-msgpack", "python3-packaging", "python3-psutil", "python3-pycryptodome", "python3-requests",
		"python3-yaml")
	return b
}

// TestBootToServing measures the time from the start of a host's systemd to the first answer of its service, in
// alternation with the peers: masterless Salt (its sources are in $CORPUS_PEERS_SALT) and ansible-pull. All hosts have
// all programs and libraries, as images would, and a unit that runs one line at boot, in place of cloud-init.
// $CORPUS_BENCH_ROUNDS is the number of rounds, three by default.
func TestBootToServing(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("CORPUS_BENCH_ROUNDS")); err == nil {
		rounds = max(n, 1)
	}
	n, s := lab.NewNetwork(t), newStore(t)
	server, pages := s.serve(n), t.TempDir()
	n.Serve(net.JoinHostPort(lab.Gateway, "80"), http.FileServer(http.Dir(pages)))
	agent := peer{name: "corpus-agent", prepare: func(t *testing.T, h *lab.Host, _ shape) {
		h.Copy(filepath.Join(repository, "bin", "corpus-agent"), "/usr/bin/corpus-agent")
		h.Copy(filepath.Join(s.keys, "root.json"), "/root/root.json")
		h.Write("/etc/hosts", h.Read("/etc/hosts")+lab.Gateway+" example.com\n")
		trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		h.Write("/etc/ssl/certs/ca-certificates.crt", h.Read("/etc/ssl/certs/ca-certificates.crt")+string(trusted))
	}, start: "corpus-agent deploy --store " + storeURL + " --trust-root /root/root.json"}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, kind := range bootShapes() {
		publishShape(t, s, kind, pages)
		times := map[string][]time.Duration{}
		peers := append([]peer{agent}, peersOf(t, kind)...)
		for round := range rounds {
			for k, p := range peers {
				took := bootOnce(t, n, p, kind, fmt.Sprintf("172.31.0.%d", 11+i*100+round*len(peers)+k))
				times[p.name] = append(times[p.name], took)
				t.Logf("%s, %s: %.2f s", kind.name, p.name, took.Seconds())
			}
		}
		for _, p := range peers {
			slices.Sort(times[p.name])
			ratio := times[p.name][rounds/2].Seconds() / times[agent.name][rounds/2].Seconds()
			fmt.Fprintf(w, "%s\t%s\t%.2f s\t%.1f\n", kind.name, p.name, times[p.name][rounds/2].Seconds(), ratio)
		}
	}
	_ = w.Flush()
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d rounds; load %s%s", rounds, load, b.String())
}

// publishShape puts a shape into the store, as a release, and into a directory, as an archive and a git repository.
func publishShape(t *testing.T, s *store, kind shape, pages string) {
	files := map[string]string{"salt/config/states/top.sls": "base: {'*': [serving]}\n",
		"salt/config/states/serving.sls": kind.salt,
		"corpus.yaml": "health: {interval: 100ms, probes: [{unit: " + kind.unit + "}, {http: 'http://127.0.0.1:" +
			kind.port + "/'}]}\n"}
	states := map[string]string{"serving.sls": kind.salt, "top.sls": "base: {'*': [serving]}\n"}
	play := map[string]string{"local.yml": kind.playbook}
	for name, content := range kind.files {
		files["salt/config/states/"+name], states[name], play[name] = content, content, content
		play["templates/"+name] = content
	}
	s.publish(kind.name, "1", "testing", tree(t, files))
	run(t, "tar", "-C", tree(t, states), "-czf", filepath.Join(pages, kind.name+".tar.gz"), ".")
	work := tree(t, play)
	git := func(args ...string) {
		run(t, append([]string{"git", "-C", work, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	bare := filepath.Join(pages, kind.name+".git")
	run(t, "git", "clone", "-q", "--bare", work, bare)
	run(t, "git", "-C", bare, "update-server-info")
}

// peersOf returns the other programs that can be measured here.
func peersOf(t *testing.T, kind shape) []peer {
	from := "http://" + lab.Gateway + "/" + kind.name
	peers := []peer{{name: "ansible-pull",
		start: "ansible-pull --full -U " + from + ".git -C main -i localhost, local.yml"}}
	salt := os.Getenv("CORPUS_PEERS_SALT")
	if salt == "" {
		t.Log("CORPUS_PEERS_SALT does not name the sources of Salt, so it is left out")
		return peers
	}
	return append(peers, peer{name: "salt-call", prepare: func(_ *testing.T, h *lab.Host, _ shape) {
		h.CopyTree(filepath.Join(salt, "salt"), "/opt/salt/salt")
		modules, _ := filepath.Glob(filepath.Join(salt, "*.py")) // libraries beside it that Debian does not have
		for _, name := range modules {
			h.Copy(name, "/opt/salt/"+filepath.Base(name))
		}
		h.Write("/etc/salt/minion", "file_client: local\nfile_roots: {base: [/srv/salt]}\n")
		h.Write("/opt/salt/call.py", "from salt.scripts import salt_call\nsalt_call()\n")
	}, start: "mkdir -p /srv/salt && curl -fsS " + from + ".tar.gz | tar -xz -C /srv/salt && " +
		"PYTHONPATH=/opt/salt python3 /opt/salt/call.py --local state.apply"})
}

// bootOnce boots a new host and returns the time until its service answers.
func bootOnce(t *testing.T, n *lab.Network, p peer, kind shape, address string) time.Duration {
	t.Helper()
	before := func(h *lab.Host) {
		h.Write("/etc/systemd/system/first-boot.service", "[Unit]\nWants=network-online.target\n"+
			"After=network-online.target\n"+
			"[Service]\nType=oneshot\nEnvironment=HOME=/root LANG=C.UTF-8\nExecStart=/bin/sh -ec '"+p.start+"'\n")
		h.Link("/etc/systemd/system/first-boot.service",
			"/etc/systemd/system/multi-user.target.wants/first-boot.service")
		h.Link("/lib/systemd/system/systemd-networkd-wait-online.service",
			"/etc/systemd/system/network-online.target.wants/systemd-networkd-wait-online.service")
		if p.prepare != nil {
			p.prepare(t, h, kind)
		}
	}
	h := lab.Prepare(t, lab.Options{Base: bootBase(), Hostname: kind.name + "-testing-local1-1", Network: n,
		Address: address, Before: before})
	start := time.Now()
	h.PowerOn()
	wait := exec.Command("nsenter", "--net=/run/netns/"+n.Name(), "sh", "-c", "for i in $(seq 6000); do "+
		"curl -fsS -m 1 -o /dev/null http://"+net.JoinHostPort(address, kind.port)+"/ 2>/dev/null && exit 0; "+
		"sleep 0.02; done; exit 1")
	err := wait.Run()
	took := time.Since(start)
	h.Ready(time.Minute)
	if err != nil {
		t.Fatalf("%s does not serve:\n%s", p.name, h.Run("journalctl", "-u", "first-boot", "-n", "60").Out)
	}
	if p.name == "corpus-agent" {
		logParts(t, h, start, took)
	}
	h.Stop()
	return took
}

// logParts logs when the agent's run began, and the times of its stages.
func logParts(t *testing.T, h *lab.Host, start time.Time, took time.Duration) {
	t.Helper()
	h.Sh("while systemctl show -p ActiveState --value first-boot | grep -q activat; do sleep 0.1; done")
	var reports []struct {
		Started, Ended time.Time
		Stages         []struct {
			Name     string
			Duration time.Duration `json:"duration_ns"`
		}
	}
	err := json.Unmarshal([]byte(h.Must("corpus-agent", "history", "--json")), &reports)
	if err != nil || len(reports) == 0 {
		t.Fatalf("%v: %d reports", err, len(reports))
	}
	parts := []string{fmt.Sprintf("boot until the agent runs %.0f ms", 1000*reports[0].Started.Sub(start).Seconds())}
	for _, s := range reports[0].Stages {
		parts = append(parts, fmt.Sprintf("%s %.0f ms", s.Name, 1000*s.Duration.Seconds()))
	}
	t.Logf("%s; first answer after %.0f ms", strings.Join(parts, ", "), 1000*took.Seconds())
}
