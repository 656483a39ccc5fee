package unpack

import (
	"context"
	"fmt"
	"path"
	"strings"
)

const (
	maxHops = 255 // links that are followed for one target

	// Following a link takes a step for each part of a name on the way. A normal tree takes a few for each link; links
	// that lead through one another take more the more there are.
	linkSteps     = 1 << 20 // for all links together
	stepsEachLink = 64      // plus so many for each link
	stepsPerLook  = 1 << 12 // after so many steps the context is checked
)

// checkLinks follows every symbolic link in the complete tree, since a link that looks harmless can lead out of the
// release through another one.
func (r *rules) checkLinks(ctx context.Context) error {
	f := &follower{links: r.links, left: linkSteps + stepsEachLink*len(r.links)}
	for name, target := range r.links {
		if err := ctx.Err(); err != nil {
			return err
		}
		inside, err := f.staysInside(ctx, path.Dir(name), target)
		switch {
		case err != nil:
			return err
		case f.left < 0:
			return &Hostile{Entry: name, Rule: "the symbolic links lead through one another too often to be followed"}
		case !inside:
			return &Hostile{Entry: name, Rule: fmt.Sprintf("it links to %q, which leaves the release", clipped(target))}
		}
	}
	return nil
}

// follower follows symbolic links, within a number of steps for all of them.
type follower struct {
	links map[string]string
	left  int // remaining steps
	taken int
}

// staysInside walks target from dir as the kernel would. A link to an absent name is allowed; so is a loop, since it
// leads nowhere.
func (f *follower) staysInside(ctx context.Context, dir, target string) (bool, error) {
	todo := f.push(nil, target)
	for hops := 0; len(todo) > 0 && hops < maxHops && f.left >= 0; {
		if f.taken++; f.taken%stepsPerLook == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		step := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch step {
		case "", ".":
			continue
		case "..":
			if dir == "." {
				return false, nil
			}
			dir = path.Dir(dir)
			continue
		}
		next := path.Join(dir, step)
		if link, ok := f.links[next]; ok {
			hops++
			todo = f.push(todo, link)
			continue
		}
		dir = next
	}
	return true, nil
}

// push puts the parts of a target before the remaining ones, the next one at the end.
func (f *follower) push(todo []string, target string) []string {
	for target != "" && f.left >= 0 {
		f.left--
		i := strings.LastIndexByte(target, '/')
		todo = append(todo, target[i+1:])
		target = target[:max(i, 0)]
	}
	return todo
}
