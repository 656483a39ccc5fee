package self

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Awaited returns the units for whose start descendants of this process wait with systemctl, under the names on their
// command lines.
func Awaited() (names []string) {
	for _, words := range systemctls() {
		names = append(names, awaited(words)...)
	}
	return names
}

// awaited returns the units for whose start a command line of systemctl waits.
func awaited(words []string) (names []string) {
	verb := ""
	for _, word := range words[1:] {
		switch {
		case word == "--no-block":
			return nil
		case strings.HasPrefix(word, "-"):
		case verb == "":
			verb = word
		default:
			names = append(names, word)
		}
	}
	starting := []string{
		"start", "restart", "try-restart", "reload", "reload-or-restart", "try-reload-or-restart", "condrestart",
		"force-reload",
	}
	if !slices.Contains(starting, verb) {
		return nil
	}
	return names
}

// Waiters returns the descendants of this process that run systemctl for a unit, such as the agent's own.
func Waiters(unit string) (found []int) {
	for pid, words := range systemctls() {
		if slices.ContainsFunc(words, func(w string) bool { return w == unit || w+".service" == unit }) {
			found = append(found, pid)
		}
	}
	return found
}

// systemctls returns the command lines of the descendants of this process that run systemctl, by process ID.
func systemctls() map[int][]string {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // without /proc it finds none
	parents := map[int]int{}
	for _, file := range files {
		pid, parent, ok := parentOf(file)
		if ok {
			parents[pid] = parent
		}
	}
	found := map[int][]string{}
	for pid := range parents {
		if !below(pid, os.Getpid(), parents) {
			continue
		}
		if words := arguments(pid); filepath.Base(words[0]) == "systemctl" {
			found[pid] = words
		}
	}
	return found
}

// parentOf returns a process and its parent from a file such as /proc/1/stat. The name of the program, in parentheses,
// may contain any character.
func parentOf(file string) (pid, parent int, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, false // it has ended
	}
	end := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 2 {
		return 0, 0, false
	}
	pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))
	if err != nil {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return pid, parent, err == nil
}

// below reports whether a process descends from another.
func below(pid, ancestor int, parents map[int]int) bool {
	for range len(parents) {
		parent, known := parents[pid]
		if !known || parent == ancestor {
			return known
		}
		pid = parent
	}
	return false
}

// arguments returns the command line of a process. It has at least one word, which is empty for a process that has
// ended.
func arguments(pid int) []string {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
}
