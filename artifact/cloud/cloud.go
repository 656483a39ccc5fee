// Package cloud has the data of a cloud: its nodes, their guests, and the images that guests are made from.
//
// The data is one file, cloud.yaml, in a release of the project cloud, which is signed and published like any other. A
// program that changes it reads the file with Parse, edits the Cloud, calls Allocate to set the values that are left
// open, shows a person the result of Diff, and publishes the output of Bytes. If another person has published
// meanwhile, Merge joins the two edits or names the conflicts. A node reads the same file, and Parse refuses a file in
// which two guests have the same address, port or name.
//
// The package reads no files, no network and no clock.
package cloud

import (
	"slices"
	"strconv"
	"strings"
)

// Names under which the data is published.
const (
	Project = "cloud"                         // the project of a cloud, and the service of its nodes
	Name    = "salt/config/states/cloud.yaml" // the file of its releases
)

// form is the version of the file format.
const form = 1

// Range of the ports of a node on which guests answer SSH; each guest of a cloud has its own.
const (
	FirstPort = 40000
	LastPort  = 50000
)

// Cloud is the content of cloud.yaml.
type Cloud struct {
	Form    int                `json:"form"`
	Domain  string             `json:"domain,omitempty"` // domain of the names of guests; empty for none
	Range4  string             `json:"range4,omitempty"` // range from which nodes get their networks
	Range6  string             `json:"range6,omitempty"`
	Images  map[string]Image   `json:"images,omitempty"`
	Nodes   map[string]Node    `json:"nodes,omitempty"`
	Guests  map[string]Guest   `json:"guests,omitempty"`
	Classes map[string]Class   `json:"classes,omitempty"`
	Deleted map[string]Deleted `json:"deleted,omitempty"` // by ID of the disk

	Users    map[string]User   `json:"users,omitempty"`
	Projects map[string]Access `json:"projects,omitempty"`
}

// Image is a release that has the root file system of guests.
type Image struct {
	Project string `json:"project"`
	Version string `json:"version"`
	Digest  string `json:"digest"` // digest of the artifact, which nodes check
}

// Node is a host that runs guests.
type Node struct {
	Mode    string `json:"mode"`              // the environment of its guests: dev, staging or prod
	Region  string `json:"region"`            // as in its hostname
	Address string `json:"address,omitempty"` // address under which other hosts reach it
	Range4  string `json:"range4,omitempty"`  // range from which its guests get addresses
	Range6  string `json:"range6,omitempty"`
	Driver  string `json:"driver"`           // name of the driver that runs the guests
	Slots   int    `json:"slots"`            // maximum number of guests
	Closed  string `json:"closed,omitempty"` // Yes: it gets no more guests
}

// Guest is a host that a node runs.
type Guest struct {
	ID       string   `json:"id,omitempty"` // machine ID, which is new for a new guest of the same name
	Node     string   `json:"node"`
	Project  string   `json:"project"` // its service
	Env      string   `json:"env"`     // dev, staging or prod
	Image    string   `json:"image"`
	Address4 string   `json:"address4,omitempty"`
	Address6 string   `json:"address6,omitempty"`
	SSHPort  int      `json:"ssh_port,omitempty"` // port on the node
	Names    []string `json:"names,omitempty"`    // that the node's proxy forwards, besides its own name
	Size     string   `json:"size"`               // size of the disk, such as 5GiB
	SSHKeys  []string `json:"ssh_keys,omitempty"` // keys that may log in as root
	Contact  string   `json:"contact,omitempty"`  // mail address that is notified when it is ready
	Mounts   []string `json:"mounts,omitempty"`   // directories of its node, each as Mount.String writes it; only in dev

	BackupTo    string   `json:"backup_to,omitempty"`    // repository of restic; empty for no backup
	BackupPaths []string `json:"backup_paths,omitempty"` // what is saved; the defaults of the base tree if empty
	BackupKeep  []string `json:"backup_keep,omitempty"`  // how many backups are kept, such as daily=7

	Stateless string   `json:"stateless,omitempty"` // Yes: its disk has no data
	Disk      string   `json:"disk,omitempty"`      // ID of its disk, if that is not the first one
	From      string   `json:"from,omitempty"`      // node that it leaves; until it has left, no node starts it
	Copy      string   `json:"copy,omitempty"`      // Yes: its disk is made from an archive of that before
	Moved     string   `json:"moved,omitempty"`     // when it left the node before
	Old       []string `json:"old,omitempty"`       // disks that other nodes keep of it, each as NODE.DISK
}

// Deleted is a disk whose guest was deleted or has moved: its node removes it. A node stops a guest that is neither
// among the guests nor deleted, and keeps its disk.
type Deleted struct {
	Guest string `json:"guest"`
	Node  string `json:"node"`

	// What the guest had, which other guests get as late as possible.
	SSHPort  int    `json:"ssh_port,omitempty"`
	Address4 string `json:"address4,omitempty"`
	Address6 string `json:"address6,omitempty"`
}

// Yes is the value of keys that are either given or not.
const Yes = "yes"

// Default values.
const (
	DefaultSize   = "5GiB"
	DefaultDriver = Nspawn
	DefaultSlots  = 20
	DefaultRange4 = "10.80.0.0/12"
)

// Modes returns the environments of nodes and guests.
func Modes() []string { return []string{modeDev, "staging", "prod"} }

// modeDev is the mode of developer environments.
const modeDev = "dev"

// The names of drivers of guests.
const (
	Nspawn = "nspawn" // systemd-nspawn
	LXC    = "lxc"
)

// Drivers returns the names of drivers of guests.
func Drivers() []string { return []string{Nspawn, LXC} }

// New returns an empty cloud.
func New() *Cloud {
	return &Cloud{Form: form, Range4: DefaultRange4, Images: map[string]Image{}, Nodes: map[string]Node{},
		Guests: map[string]Guest{}, Classes: map[string]Class{}, Deleted: map[string]Deleted{}, Users: map[string]User{},
		Projects: map[string]Access{}}
}

// Hostname returns the hostname of a guest, which gives its identity under the default convention of hostnames.
func (c *Cloud) Hostname(guest string) string {
	g := c.Guests[guest]
	return strings.Join([]string{g.Project, g.Env, c.Nodes[g.Node].Region, guest}, "-")
}

// NodeHostname returns the hostname of a node that follows the channel of the cloud with this name.
func (c *Cloud) NodeHostname(node, channel string) string {
	return strings.Join([]string{Project, channel, c.Nodes[node].Region, node}, "-")
}

// SSH returns the command that logs in to a guest; "" if its node has no address or the guest no port.
func (c *Cloud) SSH(guest string) string {
	g := c.Guests[guest]
	address := c.Nodes[g.Node].Address
	if address == "" || g.SSHPort == 0 {
		return ""
	}
	return "ssh -p " + strconv.Itoa(g.SSHPort) + " root@" + address
}

// AllNames returns the names that a proxy forwards to a guest, beginning with its own name in the domain.
func (c *Cloud) AllNames(guest string) []string {
	names := slices.Clone(c.Guests[guest].Names)
	if c.Domain != "" {
		names = slices.Insert(names, 0, guest+"."+c.Domain)
	}
	return names
}

// On returns the names of the guests of a node, sorted.
func (c *Cloud) On(node string) (names []string) {
	for _, name := range sortedKeys(c.Guests) {
		if c.Guests[name].Node == node {
			names = append(names, name)
		}
	}
	return names
}

// Free returns the number of free slots of a node.
func (c *Cloud) Free(node string) int {
	if c.Nodes[node].Closed == Yes {
		return 0
	}
	return max(0, c.Nodes[node].Slots-len(c.On(node)))
}

// Place returns the node with the most free slots among those of an environment; "" if there is none.
func (c *Cloud) Place(env string) string {
	return c.place(env, func(string) bool { return true })
}

// place is Place among the nodes that suit.
func (c *Cloud) place(env string, suits func(node string) bool) string {
	best, most := "", 0
	for _, name := range sortedKeys(c.Nodes) {
		if free := c.Free(name); c.Nodes[name].Mode == env && free > most && suits(name) {
			best, most = name, free
		}
	}
	return best
}

// ParseSize parses a size such as 512MiB, 5GiB or 1TiB and returns it in bytes; false if the text is not a size.
func ParseSize(text string) (int64, bool) {
	for unit, factor := range map[string]int64{"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		number, is := strings.CutSuffix(text, unit)
		if !is {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 1 || strconv.FormatInt(n, 10) != number || n > largestSize/factor {
			return 0, false
		}
		return n * factor, true
	}
	return 0, false
}

// largestSize is the maximum size, in bytes, of the disk of a guest.
const largestSize = 1 << 50
