package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// newCloud returns a workstation with a store that has an image, and a cloud of two nodes.
func newCloud(t *testing.T) *shell {
	t.Helper()
	s := newStore(t)
	s.artifact("image", "a file system")
	s.expect(0, "publish image-bookworm 1.0 @image.tar.zst", "")
	s.expect(0, "node add n1 --mode prod --region eu1 --address 192.0.2.1 --slots 2 --yes",
		"published cloud 1; cloud/prod is 1")
	s.expect(0, "node add n2 --mode prod --region eu1 --address 192.0.2.2 --yes", "+ node n2")
	s.expect(0, "guest image bookworm image-bookworm 1.0 --yes", "digest: sha256:")
	return s
}

// sshKey writes a public key file.
func (s *shell) sshKey(name string, fill byte) {
	s.t.Helper()
	raw := append([]byte("\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"), bytes.Repeat([]byte{fill}, 32)...)
	s.write(name, "ssh-ed25519 "+base64.StdEncoding.EncodeToString(raw)+" "+name+"\n")
}

const createWeb = "guest create web1 --project shop --env prod --image bookworm --name www.example.com --ssh-key " +
	"@ann.pub"

func TestGuestsAreCreatedChangedAndDeleted(t *testing.T) {
	s := newCloud(t)
	s.sshKey("ann.pub", 1)
	s.sshKey("bob.pub", 2)
	s.expect(0, createWeb+" --dry-run", "+ guest web1")
	s.expect(0, "guest ls", "GUEST")
	if strings.Contains(s.out, "web1") {
		t.Errorf("a dry run published:\n%s", s.out)
	}
	s.expect(2, createWeb, "a person has to confirm this change")
	s.expect(0, createWeb+" --yes", "published cloud 4")
	var g shownGuest
	s.json("guest info web1", &g)
	if g.Host != "shop-prod-eu1-web1" || g.Node != "n2" || g.SSHPort != cloud.FirstPort || len(g.ID) != 32 ||
		g.SSH != "ssh -p 40000 root@192.0.2.2" || g.Address4 == "" || g.Address6 == "" {
		t.Errorf("the guest is %+v", g)
	}
	s.expect(0, "node domain cloud.example.com --yes", "~ cloud\n    domain: cloud.example.com")
	s.expect(0, "guest enlarge web1 8GiB --yes", "size: 5GiB -> 8GiB")
	s.expect(2, "guest enlarge web1 8GiB --yes", "8GiB is not larger")
	s.expect(2, "guest trim web1 8GiB --yes", "8GiB is not smaller")
	s.expect(0, "guest trim web1 7GiB --yes", "size: 8GiB -> 7GiB")
	s.expect(0, "guest ssh-key add web1 @bob.pub --yes", "bob.pub")
	s.expect(0, "guest ssh-key add web1 @bob.pub --yes", "nothing to change")
	s.expect(0, "guest ssh-key rm web1 @ann.pub --yes", "published")
	s.expect(0, "guest name add web1 shop.example.com --yes", "www.example.com -> shop.example.com, www.example.com")
	s.expect(0, "guest name rm web1 www.example.com --yes", "published")
	s.expect(2, "guest backup web1 --keep daily=7 --yes", "the guest has no repository")
	s.expect(2, "guest backup web1 --repository rest:https://ann:pw@b.example.com/web1 --yes", "without a login")
	s.expect(0, "guest backup web1 --repository s3:https://b.example.com/b/web1 --path /srv --keep daily=7 --yes",
		"backup_to: s3:https://b.example.com/b/web1")
	s.expect(2, "guest backup web1 --keep daily=x --yes", "such as daily=7")
	s.expect(0, "guest backup web1 --off --yes", "backup_keep: daily=7 ->")
	s.expect(0, "guest ls --node n2", "web1.cloud.example.com shop.example.com")
	s.expect(2, "node rm n2 --yes", "node n2 has guests: web1")
	s.expect(0, "guest delete web1 --yes", "- guest web1")
	s.expect(0, "node rm n2 --yes", "- node n2")
	s.expect(0, "node add n2 --mode dev --region eu1 --driver lxc --yes", "driver: lxc")
	s.expect(0, "node ls", "lxc     0")
	s.expect(0, "node info n2", "driver:   lxc")
	s.expect(0, "node rm n2 --yes", "- node n2")
	s.expect(0, "node set n1 --slots 3 --address 192.0.2.9 --yes", "slots: 2 -> 3")
	s.expect(0, "node set n1 --slots 2 --yes", "slots: 3 -> 2")
	s.expect(2, "node set n9 --slots 2 --yes", "there is no node n9")
	s.expect(2, "node set n1 --yes", "slots")
	s.expect(0, "node mode n1 staging --yes", "mode: prod -> staging")
	s.expect(2, createWeb+" --yes", "no node of mode prod has a free slot")
	var nodes []shownNode
	s.json("node ls", &nodes)
	if len(nodes) != 1 || nodes[0].Host != "cloud-prod-eu1-n1" || nodes[0].Free != 2 || nodes[0].Mode != "staging" {
		t.Errorf("the nodes are %+v", nodes)
	}
}

// TestChangesOfACloudStartRollouts checks that a change of a cloud whose channel has a plan names its rollout, with the
// warnings of other moves, also as a draft.
func TestChangesOfACloudStartRollouts(t *testing.T) {
	s := newCloud(t)
	s.expect(0, "project rollout cloud prod --waves 100% --agent dev", "")
	s.rollingHost("cloud-prod-eu1-n1", artifact.Ref{Project: "cloud", Channel: "prod"}, "3")
	for _, more := range []string{" --draft @draft", ""} {
		s.expect(0, "node mode n1 staging --yes --exempt cloud-prod-eu1-n2"+more, "")
		want := "warning: --exempt changes nothing for hosts that report no older agent: cloud-prod-eu1-n2\n"
		if !strings.Contains(s.err, want) {
			t.Errorf("the change lacks the warning %q:\n%s", want, s.err)
		}
	}
	want := "its rollout to 1 host in 1 wave (1) has started: corpus rollout status cloud prod\n"
	if !strings.HasSuffix(s.out, want) {
		t.Errorf("the change does not say %q:\n%s", want, s.out)
	}
}

func TestBadCloudsAreNotPublished(t *testing.T) {
	s := newCloud(t)
	s.write("bad.pub", "ssh-ed25519 AAAA ann\n")
	s.write("private", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n")
	for line, says := range map[string]string{
		"node add n1 --mode prod --region eu1 --yes":                       "there is a node n1 already",
		"node add n-3 --mode prod --region eu1 --yes":                      "such as web1",
		"node add n3 --mode live --region eu1 --yes":                       "hint: ",
		"node add n3 --mode prod --region eu --yes":                        "the last a digit",
		"node add n3 --mode prod --region eu1 --range4 10.80.0.0/23 --yes": "overlaps",
		"node add n3 --mode prod --region eu1 --driver lcx --yes":          `did you mean "lxc"?`,
		"node add n3 --mode prod --region eu1 --address 192.0.2.1 --yes":   "give one of them another one",
		"node info n9":              "there is no node n9",
		"node domain Example --yes": "in lower case",
		"guest info web9":           "there is no guest web9",
		"guest create web1 --project shop --env prod --image trixie --yes":                "there is no image trixie",
		"guest create web1 --project shop --env live --image bookworm --yes":              "one of dev, staging, prod",
		"guest create web1 --project shop --env prod --image bookworm --size 5GB --yes":   "such as 5GiB",
		"guest create web1 --project shop --env prod --image bookworm --ssh-key @bad.pub": "not a public SSH key",
		"guest create web1 --project shop --env prod --image bookworm --ssh-key @private": "private is a openssh private key",
		"guest create web1 --project shop --env prod --image bookworm --name www --yes":   "with its domain",
		"guest create web1 --project shop --env prod --image bookworm --node n7 --yes":    "there is no node n7",
		"guest image bookworm image-bookwurm 1.0 --yes":                                   `did you mean "image-bookworm"?`,
		"node ls --channel ../x":    "channel",
		"node ls --channel staging": "staging",
		"node ls --cloud live":      "there is no list of clouds",
	} {
		s.expect(2, line, says)
	}
	s.expect(0, "ls", "cloud/prod    3")
}

// TestTreesWithMistakesInTheCloudAreNotPublished publishes trees of the project cloud that no command of clouds made.
func TestTreesWithMistakesInTheCloudAreNotPublished(t *testing.T) {
	s := newCloud(t)
	s.expect(0, "init @tree --kind cloud", "")
	s.write("tree/"+cloud.Name, "form: 2\n")
	s.expect(2, "publish cloud 100 @tree --channel prod", "cloud.yaml:1:7")
	s.expect(0, "build @tree --version 100 -o @tree.tar.zst", "")
	s.expect(2, "publish cloud 100 @tree.tar.zst --no-secret-scan", "cloud.yaml:1:7")
	s.expect(0, "node ls", "n1")
}

// TestAnEarlierCloudIsPublishedAgain returns to a version, and continues from there.
func TestAnEarlierCloudIsPublishedAgain(t *testing.T) {
	s := newCloud(t)
	s.expect(0, "point cloud prod 1", "")
	s.expect(0, "node ls", "n1")
	if strings.Contains(s.out, "n2") {
		t.Errorf("version 1 has no node n2:\n%s", s.out)
	}
	s.expect(0, "node add n4 --mode dev --region eu1 --yes", "published cloud 4")
	s.expect(0, "diff cloud 1 4", "~ salt/config/states/cloud.yaml")
	s.expect(0, "node ls", "n4")
}

// TestTwoPeoplePublishAtOnce has another person publish between a person's reading and signing.
func TestTwoPeoplePublishAtOnce(t *testing.T) {
	s := newCloud(t)
	streams := cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		Getenv: func(k string) string { return s.env[k] }}
	k := &clouds{program: &program{IO: streams, store: s.env["CORPUS_STORE"], keys: s.env["CORPUS_KEYS"]}, channel: "prod",
		yes: true}
	other := 0
	meet := func(line string) func(*cloud.Cloud) error {
		return func(c *cloud.Cloud) error {
			s.expect(0, line, "published")
			other++
			return createGuest(c, "mine", cloud.Guest{Node: "n1", Project: "shop", Env: "prod", Image: "bookworm", Size: "5GiB"})
		}
	}
	if err := k.edit(context.Background(),
		meet("guest create theirs --node n1 --project shop --env prod --image bookworm --yes")); err != nil {
		t.Fatal(err)
	}
	var all []shownGuest
	s.json("guest ls", &all)
	if len(all) != 2 || other != 1 || all[0].Address4 == all[1].Address4 || all[0].SSHPort == all[1].SSHPort {
		t.Errorf("the guests are %+v", all)
	}
	err := k.edit(context.Background(), func(c *cloud.Cloud) error {
		s.expect(0, "guest enlarge mine 7GiB --yes", "published")
		g := c.Guests["mine"]
		g.Size = "9GiB"
		c.Guests["mine"] = g
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "size is 9GiB in your edit, and 7GiB in that of another person") {
		t.Errorf("two sizes at once: %v", err)
	}
	// A change to an earlier version by one person is not overwritten by another person's edit.
	err = k.edit(context.Background(), func(c *cloud.Cloud) error {
		s.expect(0, "point cloud prod 4", "")
		g := c.Guests["mine"]
		g.Size = "9GiB"
		c.Guests["mine"] = g
		return nil
	})
	if err != nil && !strings.Contains(err.Error(), "another person") {
		t.Errorf("an edit after a change of the channel: %v", err)
	}
	s.json("guest ls", &all)
	for _, g := range all {
		if g.Size == "9GiB" && err != nil {
			t.Errorf("a refused edit was published: %+v", g)
		}
	}
}

func TestCloudsHaveNames(t *testing.T) {
	s := newCloud(t)
	store, keys := s.env["CORPUS_STORE"], s.env["CORPUS_KEYS"]
	s.env = map[string]string{"HOME": s.dir}
	s.write(".makinastates.conf", "old: {url: '"+store+"', id: ann, password: s3cr3t}\n")
	s.expect(0, "node ls --cloud old --trust-root @keys/root.json", "n2")
	if err := os.MkdirAll(s.path(".config/corpus"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(".config/corpus/clouds.yaml", "prod:\n  store: "+store+"\n  keys: "+keys+"\nlocal:\n  store: "+store+
		"\n  channel: dev\n")
	s.expect(0, "node ls --cloud prod", "n2")
	s.expect(0, "computenode_list prod", "n2")
	s.expect(0, "computenode_infos prod n1", "hostname: cloud-prod-eu1-n1")
	s.expect(0, "computenode_switchmode prod n1 dev --yes", "mode: prod -> dev")
	s.expect(0, "guest create web1 --node n2 --project shop --env prod --image bookworm --cloud prod --yes", "published")
	s.expect(2, "enlarge prod n1 web1 8GiB --yes", "guest web1 is on node n2, and not on n1")
	s.expect(0, "enlarge prod n2 web1 8GiB --yes", "size: 5GiB -> 8GiB")
	s.expect(2, "node ls --cloud prd", `did you mean "prod"?`)
	s.expect(2, "node ls --cloud local --trust-root @keys/root.json", "dev")
	for text, place := range map[string]string{"prod: {store: x, keyz: y}\n": ":1:18: ", "prod: x\n": ":1:7: ",
		"- x\n":               "not a mapping",
		"prod:\n\tstore: x\n": ":2:", "prod: {keys: x}\n": "prod has no store", "prod: {store: [x]}\n": ":1:15: "} {
		s.write(".config/corpus/clouds.yaml", text)
		s.expect(2, "node ls --cloud prod", place)
	}
	if strings.Contains(s.all.String(), "s3cr3t") {
		t.Error("the password of the list of clouds was shown")
	}
}
