//go:build !race

package httpapi

// poison makes memory that a handler must not keep unreadable after it.
const poison = false
