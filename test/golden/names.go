package golden

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// names gives each placeholder of a case a value that no other replay uses.
type names struct {
	fill   *strings.Replacer // placeholders to fresh names
	unfill *strings.Replacer // and back
}

func freshNames() names {
	letters := make([]byte, 10)
	for i := range letters {
		letters[i] = byte('a' + rand.IntN(26))
	}
	tail := string(letters)
	// Three digits each, so that no address is the beginning of another.
	octet := func() int { return 100 + rand.IntN(151) }
	pairs := []string{
		"{svc}", "svc-" + tail,
		"{svc2}", "svtwo-" + tail,
		"{svc3}", "svthree-" + tail,
		"{grp}", "grp-" + tail,
		"{ns}", "ns-" + tail,
		"{ip}", fmt.Sprintf("10.%d.%d.%d", octet(), octet(), octet()),
	}
	back := make([]string, len(pairs))
	for i := 0; i < len(pairs); i += 2 {
		back[i], back[i+1] = pairs[i+1], pairs[i]
	}
	return names{strings.NewReplacer(pairs...), strings.NewReplacer(back...)}
}
