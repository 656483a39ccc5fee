package cloud

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Class is a set of equal guests without data, its members, of which nodes run as many as are needed. Its members are
// named CLASS1, CLASS2 and so on. Nodes decide among themselves which of them runs a member, so the data of a member
// follows from the class, the number of the member and the node: no two members have the same address, port or ID,
// whichever nodes run them.
type Class struct {
	ID      string   `json:"id,omitempty"` // of which the IDs of members are made
	Project string   `json:"project"`
	Env     string   `json:"env"`
	Region  string   `json:"region"` // of the nodes that may run members
	Image   string   `json:"image"`
	Min     int      `json:"min"` // members that run at any time
	Max     int      `json:"max"`
	Metric  string   `json:"metric,omitempty"`  // that decides how many run; empty if always Min do
	Answers string   `json:"answers,omitempty"` // port and path at which members give it, such as :8080/metrics
	Above   string   `json:"above,omitempty"`   // mean of the metric above which more members run
	Below   string   `json:"below,omitempty"`   // mean below which one less does
	For     string   `json:"for,omitempty"`     // how long the mean has to be there
	Drain   string   `json:"drain"`             // how long a member runs after the decision to stop it
	Away    string   `json:"away"`              // how long a node may be away before others run its members
	Size    string   `json:"size"`
	Names   []string `json:"names,omitempty"` // names that proxies forward to all members
	SSHKeys []string `json:"ssh_keys,omitempty"`

	FirstPort    int `json:"first_port,omitempty"`    // port of nodes for SSH to member 1; member 2 has the next one
	FirstAddress int `json:"first_address,omitempty"` // number of member 1's address in the networks of nodes
}

// MostMembers is the maximum number of members of a class.
const MostMembers = 100

// Default values of classes.
const (
	DefaultFor   = "5m"
	DefaultDrain = "10m"
	DefaultAway  = "10m"
)

func classKeys() []key {
	return []key{
		{name: "id", check: CheckID, doc: "what the IDs of its members are made from"},
		{name: "project", required: true, check: checkService, doc: "the service of its members"},
		{name: "env", required: true, check: oneOf(Modes()), doc: "their environment: dev, staging or prod"},
		{name: "region", required: true, check: checkRegion, doc: "the region of the nodes that may run them"},
		{name: "image", required: true, check: CheckName, doc: "the image they are made from"},
		{name: "min", kind: number, required: true, doc: "the least number of members that run"},
		{name: "max", kind: number, required: true, doc: "the largest number of members that run"},
		{name: "metric", check: checkMetric, doc: "the metric that decides how many run"},
		{name: "answers", check: checkAnswers, doc: "the port and path at which members give it, such as :8080/metrics"},
		{name: "above", check: checkLimit, doc: "the mean above which more members run"},
		{name: "below", check: checkLimit, doc: "the mean below which one less runs"},
		{name: "for", check: checkPeriod, doc: "how long the mean has to be there, such as 5m"},
		{name: "drain", required: true, check: checkPeriod, doc: "how long a member runs after it is to stop"},
		{name: "away", required: true, check: checkAway, doc: "how long a node may be away"},
		{name: "size", required: true, check: CheckSize, doc: "the size of the disk of a member, such as 5GiB"},
		{name: "names", kind: texts, check: CheckDomain, doc: "names for which proxies lead to its members"},
		{name: "ssh_keys", kind: texts, check: CheckSSHKey, doc: "public keys that may log in as root"},
		{name: "first_port", kind: number, doc: "the port of nodes for the SSH of member 1"},
		{name: "first_address", kind: number, doc: "the number of member 1's address in the networks of nodes"},
	}
}

// The characters of names of metrics, and of paths. No expression is compiled for them, since a node checks its cloud
// in each run.
const (
	metricCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"
	pathCharacters   = metricCharacters + ".-"
)

func checkMetric(text string) error {
	return matched(text != "" && len(text) <= 100 && strings.Trim(text, metricCharacters) == "" &&
		!strings.ContainsAny(text[:1], "0123456789:"), text,
		"write its name as in /metrics, such as http_requests_in_flight")
}

func checkAnswers(text string) error {
	address, path, is := strings.Cut(text, "/")
	port, colon := strings.CutPrefix(address, ":")
	n, err := strconv.Atoi(port)
	is = is && colon && err == nil && n > 0 && n <= 65535 && strconv.Itoa(n) == port && len(text) <= 200
	for part := range strings.SplitSeq(path, "/") {
		is = is && part != "" && strings.Trim(part, pathCharacters) == ""
	}
	return matched(is, text, "write a port and a path, such as :8080/metrics")
}

func checkLimit(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	return matched(err == nil && strings.Trim(text, "0123456789.") == "" && strings.Trim(text, ".") == text &&
		n <= 1e12 && len(text) <= 20, text, "write a number from 0 on, such as 50 or 0.75")
}

func checkPeriod(text string) error {
	return checkTimes(text, time.Minute, "write a time of 1m to 24h, such as 5m")
}

// checkAway allows no time in which a node with a slow look would lose leases: it renews them after a third of it.
func checkAway(text string) error {
	return checkTimes(text, 3*time.Minute, "write a time of 3m to 24h, such as 10m")
}

func checkTimes(text string, least time.Duration, hint string) error {
	d, err := time.ParseDuration(text)
	return matched(err == nil && d >= least && d <= 24*time.Hour && len(text) <= 10, text, hint)
}

// Period returns a period of a class that was checked.
func Period(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// Limit returns the number of a limit that was checked.
func Limit(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// MemberName returns the name of a member of a class.
func MemberName(class string, number int) string { return class + strconv.Itoa(number) }

// MayRun reports whether members of a class may run on a node. A closed node runs none, nor does one whose networks are
// too small.
func (c *Cloud) MayRun(class, node string) bool {
	of, n := c.Classes[class], c.Nodes[node]
	return c.runs(of, n) && n.Closed == "" && of.fits(n)
}

func (c *Cloud) runs(of Class, n Node) bool { return n.Mode == of.Env && n.Region == of.Region }

// fits reports whether the addresses of all members are in the networks of a node.
func (of Class) fits(n Node) bool {
	for _, network := range []string{n.Range4, n.Range6} {
		prefix, err := netip.ParsePrefix(network)
		if err != nil || of.FirstAddress+of.Max > hosts(prefix)-1 {
			return false
		}
	}
	return true
}

// hosts returns how many addresses a network has, at most 2^30.
func hosts(p netip.Prefix) int { return 1 << min(30, p.Addr().BitLen()-p.Bits()) }

// addressAt returns the address with a number in a network.
func addressAt(p netip.Prefix, number int) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for i := len(bytes) - 1; number > 0 && i >= 0; i-- {
		number += int(bytes[i])
		bytes[i] = byte(number)
		number >>= 8
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

// numberOf returns the number of an address in a network; 0 if it is not in it, or has a number above 2^30.
func numberOf(p netip.Prefix, text string) int {
	addr, err := netip.ParseAddr(text)
	if err != nil || !p.Contains(addr) {
		return 0
	}
	first, number := p.Masked().Addr().AsSlice(), 0
	for i, b := range addr.AsSlice() {
		number = number<<8 + int(b-first[i])
		if number >= 1<<30 {
			return 0
		}
	}
	return number
}

// Member returns the data of a member of a class as a guest of a node. The ID of the member is another one on each
// node, so that two disks never have the same one.
func (c *Cloud) Member(class string, number int, node string) Guest {
	of, n := c.Classes[class], c.Nodes[node]
	id := sha256.Sum256(fmt.Appendf(nil, "corpus: member of a class\n%s\n%d\n%s\n", of.ID, number, node))
	g := Guest{ID: hex.EncodeToString(id[:16]), Node: node, Project: of.Project, Env: of.Env, Image: of.Image,
		SSHPort: of.FirstPort + number - 1, Size: of.Size, SSHKeys: of.SSHKeys, Stateless: Yes}
	for to, network := range map[*string]string{&g.Address4: n.Range4, &g.Address6: n.Range6} {
		if prefix, err := netip.ParsePrefix(network); err == nil {
			*to = addressAt(prefix, of.FirstAddress+number-1).String()
		}
	}
	return g
}

// ClassNames returns the names that proxies forward to all members of a class, beginning with its own in the domain.
func (c *Cloud) ClassNames(class string) []string {
	names := slices.Clone(c.Classes[class].Names)
	if c.Domain != "" {
		names = slices.Insert(names, 0, class+"."+c.Domain)
	}
	return names
}

// class reports mistakes in a class.
func (k *checking) class(name string, of Class) {
	path := "classes." + name
	k.service(path, of.Project)
	if _, known := k.cloud.Images[of.Image]; !known {
		k.add(path+".image", among(of.Image, sortedKeys(k.cloud.Images)), "there is no image %s", of.Image)
	}
	if of.Min < 1 || of.Max < of.Min || of.Max > MostMembers {
		k.add(path+".max", fmt.Sprintf("write a min of at least 1, and a max of at least that and at most %d", MostMembers),
			"a class cannot have %d to %d members", of.Min, of.Max)
		return
	}
	k.rule(path, of)
	if of.ID != "" {
		k.once(path+".id", "the ID", of.ID)
	}
	host := strings.Join([]string{of.Project, of.Env, of.Region, MemberName(name, of.Max)}, "-")
	if len(host) > longestLabel || CheckName(MemberName(name, of.Max)) != nil {
		k.add(path, "give it a shorter name", "the hostname %s of a member is too long", host)
	}
	for i := 1; i <= of.Max; i++ {
		member := MemberName(name, i)
		k.once(path, "the guest", member)
		if k.cloud.Domain != "" {
			k.once(path, "the name", member+"."+k.cloud.Domain)
			k.once(path, "the name", member+".guests."+k.cloud.Domain)
		}
	}
	for _, one := range k.cloud.ClassNames(name) {
		k.once(path, "the name", one)
	}
	k.ports(path, of)
	k.addresses(name, of)
}

// rule reports mistakes in the rule of a class.
func (k *checking) rule(path string, of Class) {
	given := []string{of.Metric, of.Answers, of.Above, of.Below, of.For}
	switch {
	case slices.Equal(given, make([]string, len(given))):
		if of.Min != of.Max {
			k.add(path+".metric", "give metric, answers, above, below and for, or make min and max equal",
				"nothing decides how many of %d to %d members run", of.Min, of.Max)
		}
	case slices.Contains(given, ""):
		k.add(path+".metric", "give metric, answers, above, below and for", "a part of the rule is missing")
	case Limit(of.Below) >= Limit(of.Above):
		k.add(path+".below", "give a smaller number than above", "%s is not below %s", of.Below, of.Above)
	}
}

func (k *checking) ports(path string, of Class) {
	if of.FirstPort == 0 {
		return
	}
	if of.FirstPort < FirstPort || of.FirstPort+of.Max-1 > LastPort {
		k.add(path+".first_port", "omit it, and corpus chooses one", "%d to %d are not ports of %d to %d", of.FirstPort,
			of.FirstPort+of.Max-1, FirstPort, LastPort)
		return
	}
	for i := range of.Max {
		k.once(path+".first_port", "the port", strconv.Itoa(of.FirstPort+i))
	}
}

// addresses reports addresses of members that guests or members of other classes have on a node that may run both.
func (k *checking) addresses(name string, of Class) {
	path := "classes." + name + ".first_address"
	if of.FirstAddress == 0 {
		return
	}
	if of.FirstAddress < firstMember {
		k.add(path, "omit it, and corpus chooses one", "the addresses below number %d are those of nodes", firstMember)
	}
	for _, other := range sortedKeys(k.cloud.Classes) {
		if o := k.cloud.Classes[other]; other < name && o.Env == of.Env && o.Region == of.Region && o.meets(of) {
			k.add(path, "omit it, and corpus chooses another one; or give it a smaller max",
				"the members have addresses of those of %s", other)
		}
	}
	for _, guest := range sortedKeys(k.cloud.Guests) {
		g := k.cloud.Guests[guest]
		n := k.cloud.Nodes[g.Node]
		if k.cloud.runs(of, n) && (of.keeps(n.Range4, g.Address4) || of.keeps(n.Range6, g.Address6)) {
			k.add(path, "omit it, and corpus chooses another one", "a member has the address of guests.%s on node %s", guest,
				g.Node)
		}
	}
}

// firstMember is the least number of an address of a member: 0 and 1 are the network's and the node's.
const firstMember = 2

// meets reports whether members of two classes have the same address on one node.
func (of Class) meets(other Class) bool {
	return of.FirstAddress != 0 && other.FirstAddress != 0 && of.FirstAddress < other.FirstAddress+other.Max &&
		other.FirstAddress < of.FirstAddress+of.Max
}

// keeps reports whether an address in a network is that of a member.
func (of Class) keeps(network, address string) bool {
	prefix, err := netip.ParsePrefix(network)
	if err != nil || of.FirstAddress == 0 {
		return false
	}
	number := numberOf(prefix, address)
	return number >= of.FirstAddress && number < of.FirstAddress+of.Max
}

// kept reports whether an address on a node is that of a member of a class.
func (c *Cloud) kept(n Node, address netip.Addr) bool {
	for _, of := range c.Classes {
		if c.runs(of, n) && (of.keeps(n.Range4, address.String()) || of.keeps(n.Range6, address.String())) {
			return true
		}
	}
	return false
}

// smallestShared is the size of the smallest networks of nodes that the addresses of classes are chosen to fit into.
const smallestShared = 64

// allocateClass sets the values that a class leaves open. It chooses the highest ports and addresses, since those of
// guests grow from the lowest one, and leaves room for a larger maximum if there is some.
func (c *Cloud) allocateClass(name string, id func() (string, error)) (err error) {
	of := c.Classes[name]
	if of.ID == "" {
		if of.ID, err = id(); err != nil {
			return err
		}
	}
	if of.FirstPort == 0 {
		used := map[int]bool{}
		for _, g := range c.Guests {
			used[g.SSHPort] = true
		}
		for _, other := range c.Classes {
			for i := range other.Max {
				used[other.FirstPort+i] = true
			}
		}
		of.FirstPort = highestRun(used, FirstPort, LastPort, of.Max)
	}
	if of.FirstAddress == 0 {
		size, used := 256, map[int]bool{}
		for _, n := range c.Nodes {
			if prefix, err := netip.ParsePrefix(n.Range4); err == nil && c.runs(of, n) && hosts(prefix) >= smallestShared {
				size = min(size, hosts(prefix))
			}
		}
		c.useNumbers(of, used)
		of.FirstAddress = highestRun(used, firstMember, size-2, of.Max)
	}
	if of.FirstPort == 0 || of.FirstAddress == 0 {
		return diag.Cloud.Hint(fmt.Errorf("there are not %d ports and addresses in a row for the class %s", of.Max, name),
			"give it a smaller max, or delete other guests or classes")
	}
	c.Classes[name] = of
	return nil
}

// useNumbers adds the numbers of addresses that guests, and members of other classes, have on nodes that may run
// members of a class.
func (c *Cloud) useNumbers(of Class, used map[int]bool) {
	for _, g := range c.Guests {
		n := c.Nodes[g.Node]
		for network, address := range map[string]string{n.Range4: g.Address4, n.Range6: g.Address6} {
			if prefix, err := netip.ParsePrefix(network); err == nil && c.runs(of, n) {
				used[numberOf(prefix, address)] = true
			}
		}
	}
	for _, other := range c.Classes {
		for i := range other.Max {
			if other.Env == of.Env && other.Region == of.Region && other.FirstAddress != 0 {
				used[other.FirstAddress+i] = true
			}
		}
	}
}

// highestRun returns the first of the highest free numbers in a row: of twice as many as are needed, or else of as
// many. It returns 0 if there are none.
func highestRun(used map[int]bool, first, last, length int) int {
	for _, length := range []int{2 * length, length} {
		row := 0
		for n := last; n >= first; n-- {
			if row++; used[n] {
				row = 0
			}
			if row == length {
				return n
			}
		}
	}
	return 0
}

// yieldClasses clears the ports and addresses of classes that are new in c, if theirs has new classes or guests that
// may have got them as well.
func (c *Cloud) yieldClasses(base, theirs *Cloud) {
	added := false
	for name := range theirs.Classes {
		_, before := base.Classes[name]
		added = added || !before
	}
	for name, of := range c.Classes {
		if added && isNew(name, base.Classes, theirs.Classes) {
			of.FirstPort, of.FirstAddress = 0, 0
			c.Classes[name] = of
		}
	}
}
