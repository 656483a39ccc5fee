package cron

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The words for what became of a tab.
const (
	same    = "present"
	changed = "updated"
	added   = "new"
)

// matches tells whether a job is the one that a command or an identifier names. A job without an
// identifier is known by its command, and takes on the identifier of whoever names it so.
func (j *job) matches(command, id string) bool {
	if id == "" {
		id = noID
	}
	own := j.ownID()
	if own == noID {
		return j.command == command
	}
	return own == id
}

func (j *job) ownID() string {
	if id := orEmpty(j.id); id != "" {
		return id
	}
	return noID
}

// find gives the first job that a command or an identifier names, those at times first.
func (t *tab) find(command, id string) (job, bool) {
	for _, jobs := range [2][]job{t.jobs, t.specials} {
		for i := range jobs {
			if jobs[i].matches(command, id) {
				return jobs[i], true
			}
		}
	}
	return job{}, false
}

// set makes a job be there as it is wanted, and says what that took. The tab it returns is another
// one if anything changed.
func (t *tab) set(wanted job) (*tab, string) {
	j, there := t.find(wanted.command, orEmpty(wanted.id))
	switch {
	case !there:
		return t.with(wanted), added
	case !j.differs(wanted):
		return t, same
	}
	// Reading the text anew drops what would not be written again, such as comments without a job.
	rest := parse(t.without(j, wanted.command).String())
	result, word := rest.set(takeOver(wanted, j))
	if word == added {
		word = changed
	}
	return result, word
}

// with is the tab with one more job.
func (t *tab) with(j job) *tab {
	c := parse(t.String())
	if j.special != "" {
		c.specials = append(c.specials, j)
		return c
	}
	j.times = drawn(j.times)
	c.jobs = append(c.jobs, j)
	return c
}

// differs tells whether a job has to change to be as wanted. What is nil is left as it is.
func (j *job) differs(wanted job) bool {
	if wanted.special != "" && j.special != wanted.special {
		return true
	}
	if wanted.special == "" {
		for i := range j.times {
			if !satisfies(j.times[i], wanted.times[i]) {
				return true
			}
		}
	}
	return wanted.comment != nil && !sameComment(j.comment, *wanted.comment) || j.disabled != wanted.disabled ||
		orNoID(wanted.id) != j.ownID() ||
		!j.runs(wanted.command)
}

// runs tells whether the job runs a command. In a line at a special time, blanks in a row read as one.
func (j *job) runs(command string) bool {
	return j.command == command || j.special != "" && j.command == strings.Join(strings.Fields(command), " ")
}

// sameComment tells whether a comment reads as the wanted one: marks and blanks at the start of a line
// and blanks at the end are lost on the way into a crontab and back.
func sameComment(has *string, wanted string) bool {
	if has == nil {
		return false
	}
	return *has == wanted || readComment(*has) == readComment(wanted)
}

func readComment(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "# ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " \t\n")
}

func orNoID(id *string) string {
	if orEmpty(id) == "" {
		return noID
	}
	return *id
}

// satisfies tells whether a time is as wanted: any number but a star does for random, and any in it for
// a range to draw from.
func satisfies(has, wanted string) bool {
	if wanted == "random" {
		return has != "*" && has != ""
	}
	if low, high, ok := drawRange(wanted); ok {
		n, err := strconv.Atoi(has)
		return err == nil && low <= n && n <= high
	}
	return has == wanted
}

// takeOver gives a wanted job what the one in its place has and the state leaves open.
func takeOver(wanted, j job) job {
	if wanted.comment == nil {
		wanted.comment = j.comment
	}
	for i := range wanted.times {
		if j.special == "" && satisfies(j.times[i], wanted.times[i]) {
			wanted.times[i] = j.times[i]
		}
	}
	if orEmpty(wanted.id) == "" {
		wanted.id = j.id
	}
	return wanted
}

// without is the tab without the first job of j's kind that is known as j is.
func (t *tab) without(j job, command string) *tab {
	c := *t
	known := func(other job) bool { return other.matches(command, j.ownID()) }
	if j.special != "" {
		c.specials = removeFirst(t.specials, known)
	} else {
		c.jobs = removeFirst(t.jobs, known)
	}
	return &c
}

func removeFirst[T any](items []T, is func(T) bool) []T {
	i := slices.IndexFunc(items, is)
	if i < 0 {
		return items
	}
	return slices.Delete(slices.Clone(items), i, i+1)
}

// remove takes a job away: one at times, or with a special one at that.
func (t *tab) remove(command, id, special string) (*tab, bool) {
	c := *t
	known := func(j job) bool {
		return j.matches(command, id) && (special == "" || j.special == special)
	}
	if special != "" {
		c.specials = removeFirst(t.specials, known)
	} else {
		c.jobs = removeFirst(t.jobs, known)
	}
	return &c, len(c.specials) != len(t.specials) || len(c.jobs) != len(t.jobs)
}

// setVariable makes a variable have a value. One that changes goes to the end.
func (t *tab) setVariable(name, v string) (*tab, string) {
	i := slices.IndexFunc(t.variables, func(v variable) bool { return v.name == name })
	if i >= 0 && t.variables[i].value == v {
		return t, same
	}
	if i >= 0 {
		rest, _ := t.removeVariable(name)
		result, word := parse(rest.String()).setVariable(name, v)
		if word == added {
			word = changed
		}
		return result, word
	}
	c := parse(t.String())
	c.variables = append(c.variables, variable{name, v})
	return c, added
}

// removeVariable takes the last variable of a name away.
func (t *tab) removeVariable(name string) (*tab, bool) {
	for i := len(t.variables) - 1; i >= 0; i-- {
		if t.variables[i].name == name {
			c := *t
			c.variables = slices.Delete(slices.Clone(t.variables), i, i+1)
			return &c, true
		}
	}
	return t, false
}

// drawRange reads 5:10, a range to draw a number from.
func drawRange(text string) (low, high int, ok bool) {
	from, to, found := strings.Cut(text, ":")
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	return min(a, b), max(a, b), found && errA == nil && errB == nil
}

// drawn puts numbers in the place of random and of ranges.
func drawn(times [5]string) [5]string {
	ends := [5][2]int{{0, 59}, {0, 23}, {1, 28}, {1, 12}, {0, 6}}
	for _, i := range []int{0, 1, 3, 4, 2} { // the day of the month follows from the month
		if i == 2 {
			ends[2][1] = lastDay(times[3])
		}
		low, high, ok := drawRange(times[i])
		if times[i] == "random" {
			low, high, ok = ends[i][0], ends[i][1], true
		}
		if ok {
			times[i] = strconv.Itoa(low + rand.IntN(high-low+1))
		}
	}
	return times
}

func lastDay(month string) int {
	switch month {
	case "1", "3", "5", "7", "8", "10", "12":
		return 31
	case "4", "6", "9", "11":
		return 30
	}
	return 28
}
