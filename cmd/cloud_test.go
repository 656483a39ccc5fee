package cmd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestStatesOfNodesWriteValidConfigurations publishes a cloud, renders its states for one of its nodes as a run does,
// and checks the results with haproxy and nft if they are installed.
func TestStatesOfNodesWriteValidConfigurations(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	r := newReader(t)
	r.env = append(r.env, "states=salt/config/states")
	r.must("corpus keys new", "corpus store init", "mkdir image", "echo system >image/rootfs.tar",
		"corpus build image -o image.tar.zst", "corpus publish image-bookworm 1.0 image.tar.zst",
		"corpus node add n1 --mode prod --region eu1 --address 192.0.2.1 --yes",
		"corpus node add n2 --mode dev --region eu1 --yes",
		"corpus node domain cloud.example.com --yes", "corpus guest image bookworm image-bookworm 1.0 --yes",
		"corpus guest create web1 --project shop --env prod --image bookworm --name www.example.com --yes",
		"corpus guest create web2 --project shop --env prod --image bookworm --yes",
		"corpus guest create other --project shop --env dev --image bookworm --yes",
		"corpus node add n3 --mode prod --region eu1 --driver lxc --yes",
		"corpus guest create gone --project shop --env prod --image bookworm --node n1 --yes",
		"corpus guest move gone n3 --copy --stopped --yes",
		"corpus guest create came --project shop --env prod --image bookworm --node n3 --yes",
		"corpus guest move came n1 --copy --stopped --yes",
		"corpus guest create comes --project shop --env prod --image bookworm --node n3 --stateless --yes",
		"corpus guest move comes n1 --wait 0s --yes || test $? = 3",
		"corpus guest delete web2 --yes", "mkdir tree && cd tree && tar --zstd -xf $(ls -t ../store/deploy/cloud/*.tar.zst "+
			"| head -n 1)",
		`echo '{"service_node": "n1", "os_family": "Debian"}' >grains.json`)
	call := func(function string) string {
		out := r.must("corpus-agent call --states tree/$states --grains grains.json --out json " + function)
		var answer struct{ Local json.RawMessage }
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatalf("%s: %v\n%s", function, err, out)
		}
		text := ""
		if json.Unmarshal(answer.Local, &text) != nil {
			return string(answer.Local)
		}
		return text
	}
	for file, c := range map[string]struct {
		want, lacks []string
		check       []string
	}{
		"haproxy.cfg": {[]string{"-m str web1.cloud.example.com www.example.com }", "req.ssl_sni -i web1.cloud.example.com",
			"bind :::40000 v4v6", "server web1 10.80.0.2:22"}, []string{"web2", "other"}, []string{"haproxy", "-c", "-f"}},
		"nftables.conf": {[]string{"policy drop", "tcp dport 40000 accept", "ip saddr 10.80.0.0/24"},
			[]string{"40001", "40002"}, []string{"unshare", "-n", "nft", "-c", "-f"}},
	} {
		text := call("slsutil.renderer salt://" + file + ".jinja default_renderer=jinja")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", file, want, text)
			}
		}
		for _, lacks := range c.lacks {
			if strings.Contains(text, lacks) {
				t.Errorf("%s has %q:\n%s", file, lacks, text)
			}
		}
		checkFile(t, filepath.Join(r.dir, file), text+"\n", c.check)
	}
	becomesNode(t, r)
	runsHooks(t, r, call)
	low := call("state.show_lowstate guests")
	for _, want := range []string{`"hostname": "shop-prod-eu1-web1"`, `"uids": 524288`, `"fun": "only"`,
		"corpus-agent image image-bookworm 1.0", `"fun": "archived"`, `"file": "/var/lib/machines/gone-`, `"moved": true`,
		`"image": "/var/lib/machines/came-`} {
		if !strings.Contains(low, want) {
			t.Errorf("the states of guests lack %s:\n%s", want, low)
		}
	}
	if strings.Contains(low, "systemd-nspawn@gone") || strings.Contains(low, "systemd-nspawn@comes") {
		t.Errorf("the states start a guest that has left, or that its node before may run:\n%s", low)
	}
	runsLXC(t, r, call)
	runsMembers(t, r, call)
	for _, sls := range []string{"check", "hosts", "network", "firewall", "proxy"} {
		if low := call("state.show_lowstate " + sls); !strings.Contains(low, `"fun"`) {
			t.Errorf("%s has no states for a node:\n%s", sls, low)
		}
	}
	if out := r.must("corpus-agent call --states tree/$states --grains grains.json state.apply check"); !strings.Contains(
		out, "Succeeded: 1") {
		t.Errorf("the node does not accept the cloud:\n%s", out)
	}
	r.must("sed -i 's/ssh_port: 40000/ssh_port: 40002/' tree/$states/cloud.yaml")
	if out, err := r.run("corpus-agent call --states tree/$states --grains grains.json state.apply check"); err == nil ||
		!strings.Contains(out, "the port 40002 is that of") {
		t.Errorf("the node accepts two guests with one port (%v):\n%s", err, out)
	}
}

// runsLXC checks the states of a node whose driver is LXC.
func runsLXC(t *testing.T, r *reader, call func(string) string) {
	t.Helper()
	r.must(`echo '{"service_node": "n3", "os_family": "Debian"}' >grains.json`)
	low := call("state.show_lowstate guests")
	for _, want := range []string{`"driver": "lxc"`, `"name": "corpus-lxc@gone"`, `"text": "root:524288:655425536"`,
		`"target": "/dev/null"`} {
		if !strings.Contains(low, want) || strings.Contains(low, "systemd-container") {
			t.Errorf("the states of a node with LXC lack %s:\n%s", want, low)
		}
	}
	r.must(`echo '{"service_node": "n1", "os_family": "Debian"}' >grains.json`)
}

// runsMembers checks the states of a node that runs members of a class: one that is asked, one that drains, one whose
// class was made again, and one that it does not run any more.
func runsMembers(t *testing.T, r *reader, call func(string) string) {
	t.Helper()
	r.must("cp tree/$states/cloud.yaml cloud.yaml",
		"corpus guest class set app --project shop --env prod --image bookworm --min 2 --max 4 --name shop.example.com "+
			"--metric busy --answers :80/metrics --above 50 --below 10 --yes",
		"rm -r tree && mkdir tree && cd tree && tar --zstd -xf $(ls -t ../store/deploy/cloud/*.tar.zst | head -n 1)",
		`id=$(sed -n '/^  app:/,$s/^    id: //p' tree/$states/cloud.yaml | head -n 1 | tr -d '"')
		mkdir -p root/var/lib/corpus
		member() {
			echo '"'$1'": {"id": "'$a${1#app}'", "node": "n1", "project": "shop", "env": "prod", "image": "bookworm", "size": "1GiB"'
			echo ', "address4": "10.80.0.20'${1#app}'", "address6": "fd00::'${1#app}'", "ssh_port": 4920'${1#app}
			echo ', "class": "app", "of": "'$2'", "proxy": "'$3'"}'
		}
		a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
		echo '{"generation": "g7", "removed": ["'$a'9"], "guests": {' $(member app1 $id yes), $(member app2 $id backup), \
			$(member app3 $id no), $(member app4 old yes) '}}' >root/var/lib/corpus/members.json`)
	low := call("state.show_lowstate guests")
	for want, is := range map[string]bool{`"name": "systemd-nspawn@app1"`: true, `"name": "systemd-nspawn@app3"`: true,
		`systemd-nspawn@app4`: false, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa4"`: true, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa9"`: true,
		`"name": "corpus-members.timer"`: true, `"contents": "g7"`: true, `"hostname": "shop-prod-eu1-app2"`: true} {
		if strings.Contains(low, want) != is {
			t.Errorf("the states of a node with members have %s: want %t\n%s", want, is, low)
		}
	}
	text := call("slsutil.renderer salt://haproxy.cfg.jinja default_renderer=jinja")
	for want, is := range map[string]bool{"use_backend http_class_app if { req.hdr(host),field(1,:),lower -m str " +
		"app.cloud.example.com shop.example.com }": true, "server app1 10.80.0.201:80 check\n": true,
		"server app2 10.80.0.202:80 check backup\n": true, "server app3 10.80.0.203:80 check": false,
		"server app3 10.80.0.203:22\n": true, "server app4": false, "use_backend https_class_app": true} {
		if strings.Contains(text, want) != is {
			t.Errorf("haproxy.cfg of a node with members has %q: want %t\n%s", want, is, text)
		}
	}
	checkFile(t, filepath.Join(r.dir, "haproxy.cfg"), text+"\n", []string{"haproxy", "-c", "-f"})
	text = call("slsutil.renderer salt://nftables.conf.jinja default_renderer=jinja")
	if !strings.Contains(text, "dport 49202") {
		t.Errorf("the firewall is closed for a member:\n%s", text)
	}
	r.must("rm root/var/lib/corpus/members.json", "cp cloud.yaml tree/$states/cloud.yaml")
}

// runsHooks checks the states of hooks of guests that are not made, are being made, and are made.
func runsHooks(t *testing.T, r *reader, call func(string) string) {
	t.Helper()
	r.must("mkdir -p root/srv/projects/cloud/next/hooks && cd root/srv/projects/cloud/next/hooks && "+
		"mkdir guest-create.d guest-created.d && touch guest-create.d/10-dns guest-create.d/README guest-created.d/50-tell",
		"mkdir -p root/var/lib/corpus-guests/web1")
	const before, after, made = "guest-create.d/10-dns", "guest-created.d/50-tell", "web1 was made"
	has := func(when string, wants ...string) {
		t.Helper()
		_, low, _ := strings.Cut(call("state.show_lowstate guests"), "/var/lib/corpus-guests/web1")
		for _, text := range []string{before, after, made, "README"} {
			of := `"__id__": "` + strings.NewReplacer(".d/", " ").Replace(text) + " of web1"
			if text == made {
				of = `"__id__": "` + made
			}
			if want := slices.Contains(wants, text); strings.Contains(low, of) != want {
				t.Errorf("%s: states of %s: want %t\n%s", when, text, want, low)
			}
		}
		if len(wants) > 0 && !strings.Contains(low, `"CORPUS_GUEST_NAMES": "web1.cloud.example.com www.example.com"`) {
			t.Errorf("%s: hooks lack the names of the guest:\n%s", when, low)
		}
	}
	has("a guest that is not made", before, after, made)
	r.must("grep -A 1 ' web1:' tree/$states/cloud.yaml | sed -n 's/.* id: //p' | tr -d '\"' >id",
		`echo '{"id":"'$(cat id)'","step":"ready"}' >root/var/lib/corpus-guests/web1.json`,
		"touch root/var/lib/corpus-guests/web1/being-made")
	has("a guest whose hooks have not all run", after, made)
	r.must("rm root/var/lib/corpus-guests/web1/being-made")
	has("a guest that is made")
	r.must("rm -r root/var/lib/corpus-guests")
}

// becomesNode checks that the first deploy of a host with the name of a node runs the states of nodes.
func becomesNode(t *testing.T, r *reader) {
	t.Helper()
	out := r.must("mkdir -p node/etc/systemd/network node/etc/haproxy && echo cloud-prod-eu1-n1 >node/etc/hostname",
		"corpus-agent deploy --root node --trust-root keys/root.json --test")
	for _, want := range []string{"guest.present web1", "/etc/nftables.conf", "/etc/haproxy/haproxy.cfg"} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run of a node's first deploy lacks %s:\n%s", want, out)
		}
	}
}

// checkFile checks a configuration with a program, if it is installed.
func checkFile(t *testing.T, file, text string, check []string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if check[0] == "unshare" && os.Geteuid() != 0 {
		t.Logf("%s was not checked: root is needed for a network namespace", file)
		return
	}
	for _, word := range check {
		if _, err := exec.LookPath(word); err != nil && !strings.HasPrefix(word, "-") {
			t.Logf("%s was not checked: %v", file, err)
			return
		}
	}
	if out, err := exec.Command(check[0], append(check[1:], file)...).CombinedOutput(); err != nil {
		t.Errorf("%s refuses the file of the states: %v\n%s", fmt.Sprint(check), err, out)
	}
}
