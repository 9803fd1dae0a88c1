// Package generations holds all APIs together: what is registered or changed
// through one of them shows the same in every other one.
package generations
