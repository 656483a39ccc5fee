package cloud_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// accessible returns the sample with users of a project.
func accessible(t testing.TB) *cloud.Cloud {
	t.Helper()
	c := sample(t)
	c.Users["ann"], c.Users["bob"] = cloud.User{SSHKeys: []string{sshKey("ann")}}, cloud.User{}
	c.Projects["shop"] = cloud.Access{Members: []string{"ann", "bob"}, Sudo: []string{"ann ALL", "bob /bin/true -x"}}
	allocate(t, c)
	return c
}

func TestUsersGetNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := accessible(t)
	if c.Users["ann"].UID != cloud.FirstUID || c.Users["bob"].UID != cloud.FirstUID+1 ||
		c.Projects["shop"].GID != cloud.FirstGID {
		t.Errorf("the numbers are %+v, %+v", c.Users, c.Projects)
	}
	text, err := c.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		"uid: 10002":             "uid: 10001|users.bob.uid: the number 10001 is that of users.ann.uid",
		"uid: 10001":             "uid: 999|999 is not a number of 10001 to 19999",
		"gid: 20001":             "gid: 10001|10001 is not a number of 20001 to 29999",
		"members:\n      - ann":  "members:\n      - root|is the name of an account of the system",
		"  bob:\n    uid: 10002": "  eve:\n    uid: 10002|there is no user bob",
		`"bob /bin/true`:         `"eve /bin/true|eve is no member`,
		`"bob /bin/true -x"`:     `"bob true"|write ALL, or the path of a program`,
		`"ann ALL"`:              `"ann ALL\n"|write ALL, or the path of a program`,
		"  shop:\n    gid":       "  sudo:\n    gid|to which systems give rights",
	} {
		to, says, _ := strings.Cut(want, "|")
		_, err := cloud.Parse("c.yaml", []byte(strings.Replace(string(text), from, to, 1)))
		if err == nil || !strings.Contains(err.Error()+strings.Join(diag.AllHints(err), "\n"), says) {
			t.Errorf("%q in the place of %q: %v, want %q", to, from, err, says)
		}
	}
}

// TestNumbersOfUsersAreNotUsedAgainAfterARollback adds users to a cloud that lacks those of its newest release.
func TestNumbersOfUsersAreNotUsedAgainAfterARollback(t *testing.T) {
	t.Parallel()
	newest, c := accessible(t), sample(t)
	c.Users["zoe"], c.Users["bob"] = cloud.User{}, cloud.User{}
	c.Projects["blog"] = cloud.Access{Members: []string{"zoe"}}
	if err := c.NumbersAfter(newest); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Users["bob"].UID, newest.Users["bob"].UID; got != want {
		t.Errorf("the number of a user of the newest release is %d, want %d", got, want)
	}
	if got := c.Users["zoe"].UID; got != cloud.FirstUID+2 {
		t.Errorf("the number of a new user is %d, want %d", got, cloud.FirstUID+2)
	}
	if got := c.Projects["blog"].GID; got != cloud.FirstGID+1 {
		t.Errorf("the number of a new project is %d, want %d", got, cloud.FirstGID+1)
	}
}

// TestAccessOfTwoPeopleIsJoined merges edits of two people who add users at once, and of one who removes a user.
func TestAccessOfTwoPeopleIsJoined(t *testing.T) {
	t.Parallel()
	base := accessible(t)
	mine, theirs := clone(t, base), clone(t, base)
	for c, user := range map[*cloud.Cloud]string{mine: "carl", theirs: "dora"} {
		c.Users[user] = cloud.User{}
		a := c.Projects["shop"]
		a.Members = append(a.Members, user)
		c.Projects["shop"] = a
		allocate(t, c)
	}
	joined, err := cloud.Merge(base, mine, theirs)
	if err != nil {
		t.Fatal(err)
	}
	allocate(t, joined)
	if joined.Users["dora"].UID != theirs.Users["dora"].UID || joined.Users["carl"].UID == joined.Users["dora"].UID ||
		strings.Join(joined.Projects["shop"].Members, " ") != "ann bob dora carl" {
		t.Errorf("the users are %+v, %+v", joined.Users, joined.Projects)
	}
	gone := clone(t, base)
	gone.Revoke("bob", "shop")
	if got := gone.Projects["shop"]; strings.Join(got.Members, " ") != "ann" || len(got.Commands("bob")) > 0 ||
		strings.Join(got.Commands("ann"), "") != "ALL" {
		t.Errorf("after bob is removed: %+v", got)
	}
}

// TestNamesOfSystemsAreNoUsersOrProjects checks names of accounts of images and packages, and of groups with rights.
func TestNamesOfSystemsAreNoUsersOrProjects(t *testing.T) {
	for _, name := range strings.Fields("ec2-user azureuser vagrant opc git jenkins prometheus systemd-network alice") {
		if refused := cloud.CheckUser(name) != nil; refused != (name != "alice") {
			t.Errorf("a user with the name %s is refused: %t", name, refused)
		}
	}
	for _, name := range strings.Fields("google-sudoers systemd-journal kvm netdev lxc sys backup plugdev " +
		"docker shop cloud") {
		if refused := cloud.CheckAccess(name) != nil; refused == (name == "shop" || name == "cloud") {
			t.Errorf("a project with the name %s is refused: %t", name, refused)
		}
	}
}
