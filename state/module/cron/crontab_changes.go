package cron

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The results of a change, in Salt's words.
const (
	same    = "present"
	changed = "updated"
	added   = "new"
)

// matches reports whether a command or an identifier names the job. A job without an identifier is matched by
// its command, and gets the identifier of the state that matches it.
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

// find returns the first job that a command or an identifier names. Jobs at times precede those at special
// times.
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

// set adds or changes a job and returns the result in Salt's words. If anything changes, it returns a new tab.
func (t *tab) set(wanted job) (*tab, string) {
	j, there := t.find(wanted.command, orEmpty(wanted.id))
	switch {
	case !there:
		return t.with(wanted), added
	case !j.differs(wanted):
		return t, same
	}
	// Parsing the text again drops lines that are not written back, such as comments without a job.
	rest := parse(t.without(j, wanted.command).String())
	result, word := rest.set(takeOver(wanted, j))
	if word == added {
		word = changed
	}
	return result, word
}

// with returns the tab with another job.
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

// differs reports whether a job must change. A comment of nil is not compared.
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

// runs reports whether the job runs a command. In lines at a special time, consecutive blanks count as one.
func (j *job) runs(command string) bool {
	return j.command == command || j.special != "" && j.command == strings.Join(strings.Fields(command), " ")
}

// sameComment reports whether a comment equals the wanted one once written to a crontab and read back, which
// loses leading number signs and blanks of each line and blanks at the end.
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

// satisfies reports whether a time is as wanted. For random, any value but a star suffices; for a range to draw
// from, any number in it.
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

// takeOver returns the wanted job with the properties of the replaced job j where the state leaves them open.
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

// without returns the tab without the first job of the same kind (at times or at special times) that matches
// like j.
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

// remove returns the tab without a job at times or, if special is set, a job at that special time.
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

// setVariable returns the tab with a variable set, and the result in Salt's words. A variable that changes moves to the
// end.
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

// removeVariable returns the tab without the last variable with a name.
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

// drawRange parses a range from which a number is drawn, such as 5:10.
func drawRange(text string) (low, high int, ok bool) {
	from, to, found := strings.Cut(text, ":")
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	return min(a, b), max(a, b), found && errA == nil && errB == nil
}

// drawn returns the times with random numbers in the place of random and ranges.
func drawn(times [5]string) [5]string {
	ends := [5][2]int{{0, 59}, {0, 23}, {1, 28}, {1, 12}, {0, 6}}
	for _, i := range []int{0, 1, 3, 4, 2} { // the last day depends on the month
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
