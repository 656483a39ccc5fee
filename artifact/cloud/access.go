package cloud

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Ranges of the numbers of users and of the groups of projects. A user has a private group with the number of the user.
const (
	FirstUID = 10001
	LastUID  = 19999
	FirstGID = 20001
	LastGID  = 29999
)

// User is a person who may log in to hosts of projects.
type User struct {
	UID     int      `json:"uid,omitempty"`
	Name    string   `json:"name,omitempty"` // such as Alice Ash
	SSHKeys []string `json:"ssh_keys,omitempty"`
	Closed  string   `json:"closed,omitempty"` // Yes: the account is removed, and no other user gets its number
}

// Access says who may log in to the hosts of one project.
type Access struct {
	GID     int      `json:"gid,omitempty"` // number of the project's group
	Members []string `json:"members,omitempty"`
	Sudo    []string `json:"sudo,omitempty"` // commands that members may run as root, each as USER COMMAND
}

func userKeys() []key {
	return []key{
		{name: "uid", kind: number, doc: "the number of the user on hosts"},
		{name: "name", check: CheckPerson, doc: "the person's name, such as Alice Ash"},
		{name: "ssh_keys", kind: texts, check: CheckSSHKey, doc: "public keys with which the user logs in"},
		{name: "closed", check: oneOf([]string{Yes}), doc: "yes for a user who is removed"},
	}
}

func accessKeys() []key {
	return []key{
		{name: "gid", kind: number, doc: "the number of the project's group on hosts"},
		{name: "members", kind: texts, check: CheckUser, doc: "users who log in to hosts of the project"},
		{name: "sudo", kind: texts, check: CheckSudo, doc: "what members run as root, as USER COMMAND"},
	}
}

var userPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,30}$`) })

// accounts are names of accounts that systems and their packages have: the SSH keys of such a user would open them.
const accounts = "root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody " +
	"sshd messagebus postfix postgres mysql mongodb redis openldap sssd bind haproxy debian ubuntu admin " +
	"ftp tss polkitd uuidd syslog tcpdump statd landscape pollinate unbound chrony ec2-user azureuser " +
	"vagrant centos cloud-user opc rocky almalinux fedora alpine arch core git gitlab-runner jenkins " +
	"nginx apache caddy prometheus grafana node-exporter rabbitmq elasticsearch memcache consul vault " +
	"dnsmasq ntp avahi colord rtkit saned operator halt shutdown adm libvirt-qemu lxc-dnsmasq nfsnobody " +
	"rpc rpcuser dbus tomcat zabbix munin icinga nagios dovecot opendkim cloud-init"

// CheckUser returns an error if a user may not have this name.
func CheckUser(name string) error {
	if slices.Contains(strings.Fields(accounts), name) || strings.HasPrefix(name, "systemd-") {
		return diag.Cloud.Hint(fmt.Errorf("%q is the name of an account of the system", clipped(name)),
			"choose another name for the user")
	}
	return matches(userPattern(), name,
		"write at most 31 lower-case letters, digits, hyphens and underscores, the first a letter, such as alice")
}

// groups are names of groups to whose members systems give rights.
const groups = "root sudo wheel admin adm docker lxd libvirt disk shadow staff google-sudoers kvm netdev lxc sys " +
	"backup plugdev daemon bin tty kmem mem lp mail man video render input audio cdrom dialout floppy " +
	"tape utmp crontab ssh sgx sasl operator users nogroup incus incus-admin podman libvirt-qemu " +
	"wireshark sambashare lpadmin ssl-cert www-data src games uucp bluetooth scanner messagebus haproxy " +
	"bind openldap sssd nobody"

// CheckAccess returns an error if users cannot be members of a project with this name.
func CheckAccess(project string) error {
	if slices.Contains(strings.Fields(groups), project) || strings.HasPrefix(project, "systemd-") {
		return diag.Cloud.Hint(fmt.Errorf("%q is the name of a group to which systems give rights", project),
			"hosts of this project need a name of another group: rename the project")
	}
	return checkService(project)
}

var personPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\pL[\pL0-9 .'-]{0,61}[\pL0-9.]$`)
})

// CheckPerson returns an error if the text is not the name of a person.
func CheckPerson(text string) error {
	return matches(personPattern(), text, "write letters and spaces, such as Alice Ash")
}

var sudoPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(ALL|/[!-~]+( [!-~]+)*)$`) })

// CheckCommand returns an error if the text is not a command of a sudo rule.
func CheckCommand(text string) error {
	const longest = 500
	if len(text) > longest {
		text = text[:longest] + " "
	}
	return matches(sudoPattern(), text, "write ALL, or the path of a program and its arguments, such as "+
		"/usr/bin/systemctl restart nginx")
}

// CheckSudo returns an error if the text is not a user and a command.
func CheckSudo(text string) error {
	user, command, _ := strings.Cut(text, " ")
	if err := CheckUser(user); err != nil {
		return err
	}
	return CheckCommand(command)
}

// Commands returns what a user may run as root on hosts of the project.
func (a Access) Commands(user string) (commands []string) {
	for _, one := range a.Sudo {
		if of, command, _ := strings.Cut(one, " "); of == user {
			commands = append(commands, command)
		}
	}
	return commands
}

// SetCommands replaces what a user may run as root on hosts of the project.
func (a *Access) SetCommands(user string, commands []string) {
	a.Sudo = slices.DeleteFunc(slices.Clone(a.Sudo), func(one string) bool { return strings.HasPrefix(one, user+" ") })
	for _, command := range commands {
		a.Sudo = append(a.Sudo, user+" "+command)
	}
}

// Revoke ends the access of a user to the hosts of a project.
func (c *Cloud) Revoke(user, project string) {
	a := c.Projects[project]
	a.SetCommands(user, nil)
	a.Members = slices.DeleteFunc(slices.Clone(a.Members), func(one string) bool { return one == user })
	c.Projects[project] = a
}

// NumbersAfter sets the numbers of users and projects that have none, as Allocate does, and none of them is one that
// the newest release of the cloud has, which differs from the one that is changed after a rollback. Those that are in
// the newest release get the numbers that they have there.
func (c *Cloud) NumbersAfter(newest *Cloud) error {
	err := numbered("user", c.Users, newest.Users, func(u *User) *int { return &u.UID }, FirstUID, LastUID)
	if err != nil {
		return err
	}
	return numbered("the group of project", c.Projects, newest.Projects, func(a *Access) *int { return &a.GID },
		FirstGID, LastGID)
}

// allocateAccess sets the numbers of users and projects that have none.
func (c *Cloud) allocateAccess() error { return c.NumbersAfter(&Cloud{}) }

// numbered sets the numbers of objects that have none to those that they had before, or to numbers that none of the
// others has or had.
func numbered[V any](what string, all, before map[string]V, number func(*V) *int, first, last int) error {
	used := map[int]bool{}
	for _, one := range all {
		used[*number(&one)] = true
	}
	taken := maps.Clone(used)
	for _, one := range before {
		taken[*number(&one)] = true
	}
	for _, name := range sortedKeys(all) {
		one, old := all[name], before[name]
		n := number(&one)
		if *n != 0 {
			continue
		}
		if *n = *number(&old); *n == 0 || used[*n] {
			var err error
			if *n, err = freeNumber("numbers", taken, nil, first, last); err != nil {
				return fmt.Errorf("choosing a number for %s %s: %w", what, name, err)
			}
		}
		used[*n], taken[*n] = true, true
		all[name] = one
	}
	return nil
}

// access reports numbers of two users or projects, and members that are no users.
func (k *checking) access() {
	for _, name := range sortedKeys(k.cloud.Users) {
		k.number("users."+name+".uid", k.cloud.Users[name].UID, FirstUID, LastUID)
	}
	for _, name := range sortedKeys(k.cloud.Projects) {
		k.number("projects."+name+".gid", k.cloud.Projects[name].GID, FirstGID, LastGID)
		k.members("projects."+name, k.cloud.Projects[name])
	}
}

// number reports the number of a user or project that another one has, or that is not of a range.
func (k *checking) number(path string, n, first, last int) {
	if n == 0 {
		return
	}
	if k.once(path, "the number", fmt.Sprint(n)); n < first || n > last {
		k.add(path, "omit it, and corpus chooses one", "%d is not a number of %d to %d", n, first, last)
	}
}

// members reports members of a project that are no users, and rules of others than members.
func (k *checking) members(path string, a Access) {
	for _, user := range a.Members {
		if u, known := k.cloud.Users[user]; !known || u.Closed == Yes {
			k.add(path+".members", among(user, sortedKeys(k.cloud.Users)), "there is no user %s", user)
		}
	}
	for _, one := range a.Sudo {
		if user, _, _ := strings.Cut(one, " "); !slices.Contains(a.Members, user) {
			k.add(path+".sudo", "add the user to the members, or remove the rule", "%s is no member", user)
		}
	}
}

// yieldAccess clears the numbers of users and projects that are new in c and in use in theirs.
func (c *Cloud) yieldAccess(base, theirs *Cloud) {
	yieldNumbers(base.Users, c.Users, theirs.Users, func(u *User) *int { return &u.UID })
	yieldNumbers(base.Projects, c.Projects, theirs.Projects, func(a *Access) *int { return &a.GID })
}

func yieldNumbers[V any](base, mine, theirs map[string]V, number func(*V) *int) {
	taken := map[int]bool{}
	for _, one := range theirs {
		taken[*number(&one)] = true
	}
	for name, one := range mine {
		if isNew(name, base, theirs) && taken[*number(&one)] {
			*number(&one) = 0
			mine[name] = one
		}
	}
}
