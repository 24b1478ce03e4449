// What the copy button takes from a console's block: what was typed, without prompts and without what was printed.
for (const code of document.querySelectorAll("pre > code")) {
  if (!code.querySelector(".gp")) continue;
  const typed = [];
  let within = false; // a statement that goes on with "..."
  for (const line of code.textContent.split("\n")) {
    const first = line.startsWith(">>> ") || line === ">>>";
    within = first || (within && (line.startsWith("... ") || line === "..."));
    if (within) typed.push(line.slice(4));
  }
  code.closest(".highlight").dataset.copy = typed.join("\n");
}
