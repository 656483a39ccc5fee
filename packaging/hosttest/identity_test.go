//go:build hosts

package hosttest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// metadata is the metadata service of an instance that an auto scaling group started. It supports only version 2.
type metadata struct {
	mu    sync.Mutex
	asked []string
}

const token = "AQAEAtoken=="

func (m *metadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.asked = append(m.asked, r.URL.Path)
	m.mu.Unlock()
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
		fmt.Fprint(w, token)
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") != token:
		http.Error(w, "", http.StatusUnauthorized)
	case r.URL.Path == "/latest/dynamic/instance-identity/document":
		fmt.Fprint(w,
			`{"instanceId": "i-0abc1234def567890", "region": "us-east-1", "availabilityZone": "us-east-1a", "version": `+
				`"2017-09-30"}`)
	case r.URL.Path == "/latest/meta-data/tags/instance/aws:autoscaling:groupName":
		fmt.Fprint(w, "named-testing-useast1")
	default:
		http.NotFound(w, r)
	}
}

func (m *metadata) questions() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.asked...)
}

// TestIdentityFromTheCloud uses a host with a hostname of the cloud. A state sets the hostname from the grains, after
// which the host does not query the cloud any more.
func TestIdentityFromTheCloud(t *testing.T) {
	n, s, m := lab.NewNetwork(t), newStore(t), &metadata{}
	n.Serve(lab.Metadata+":80", m)
	s.publish("named", "1", "testing", tree(t, map[string]string{
		"salt/config/states/top.sls": "base:\n  'service_group:named-testing':\n    - match: grain\n    - named\n",
		"salt/config/states/named.sls": `
{% set name = grains['cluster_name'] ~ '-' ~ grains['service_node'] %}
Ensure the host is called what it is:
  cmd.run:
    - name: hostnamectl set-hostname {{ name }}
    - unless: test "$(hostname -s)" = "{{ name }}"

/etc/identity:
  file.managed:
    - contents: {{ grains['service_name'] }} {{ grains['service_instance'] }} {{ grains['region'] }} {{ grains['service_node'] }}
`}))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "ip-172-31-0-11", Network: n, Address: "172.31.0.11"})
	s.reach(h, server)
	install(t, h)

	agent(t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json").converged(t)
	if got := strings.TrimSpace(h.Read("/etc/identity")); got != "named testing useast1 0abc1234def567890" {
		t.Errorf("the identity is %q", got)
	}
	if got := h.Sh("hostname"); got != "named-testing-useast1-0abc1234def567890" {
		t.Errorf("the hostname is %q", got)
	}
	if got := strings.Join(m.questions(), " "); !strings.Contains(got, "groupName") {
		t.Errorf("the metadata service got the requests %s", got)
	}
	before := len(m.questions())
	h.Reboot()
	agent(t, h, "deploy").converged(t)
	h.Sh("corpus-agent grains service_name; corpus-agent status")
	if asked := m.questions()[before:]; len(asked) != 0 {
		t.Errorf("after the hostname was set, the cloud still gets the requests %s", asked)
	}
	if got := strings.TrimSpace(h.Read("/etc/identity")); got != "named testing useast1 0abc1234def567890" {
		t.Errorf("by its hostname, the identity is %q", got)
	}
}

// TestHostWithoutIdentity uses a host without an identity in its name or from a cloud.
func TestHostWithoutIdentity(t *testing.T) {
	s := newStore(t)
	s.publish("named", "1", "testing", tree(t, map[string]string{"salt/config/states/top.sls": "base: {}\n"}))
	h := lab.Boot(t, lab.Options{Hostname: "debian"})
	h.CopyTree(s.dir, "/opt/store")
	h.Copy(s.keys+"/root.json", "/root/root.json")
	install(t, h)
	r := h.Run("corpus-agent", "deploy", "--store", "file:///opt/store", "--trust-root", "/root/root.json")
	if r.Code != 2 || !strings.Contains(r.Out+r.Err, "{service}-{instance}-{region}-{node}") ||
		!strings.Contains(r.Out+r.Err, "hint:") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
	if h.Exists("/srv/service") {
		t.Error("a host without an identity deployed a release")
	}
}

// TestFirstBoot has cloud-init configure a host from its user data.
func TestFirstBoot(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("slow", "1", "testing", slow(t, "1"))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "golden-image", Network: n, Address: "172.31.0.11"})
	h.Sh("apt-get install -y cloud-init")
	s.reach(h, server)
	h.Copy(deb(t), "/opt/corpus-agent.deb")
	h.Write("/etc/cloud/cloud.cfg.d/90-lab.cfg",
		"datasource_list: [NoCloud]\nnetwork: {config: disabled}\nmanage_etc_hosts: false\n")
	h.Write("/var/lib/cloud/seed/nocloud/meta-data", "instance-id: lab-1\nlocal-hostname: slow-testing-local1-1\n")
	h.Write("/var/lib/cloud/seed/nocloud/user-data", `#cloud-config
runcmd:
  - apt-get install -y /opt/corpus-agent.deb
  - corpus-agent deploy --store `+storeURL+` --trust-root /root/root.json
`)
	h.Sh("cloud-init clean --logs; rm -f /etc/machine-id; touch /etc/machine-id")
	h.Reboot()
	h.Sh("cloud-init status --wait || true")
	if got := strings.TrimSpace(h.Run("cat", "/etc/slow/after").Out); got != "1" {
		t.Fatalf("after its first boot the host has %q\n%s", got, h.Sh("tail -40 /var/log/cloud-init-output.log"))
	}
	if got := timer(h); got != "enabled active" {
		t.Errorf("the timer is %s", got)
	}
}
