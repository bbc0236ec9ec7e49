// Draws the page that the part after # names, and keeps bookings in the local storage.
const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday"];
const LIMIT = 3;
const CHECK_MILLISECONDS = 4000;
const main = document.querySelector("main");
const state = { day: "All days", level: "Any level", note: "", alert: "" };

const saved = () => JSON.parse(localStorage.getItem("bookings") || "{}");
const save = (bookings) => localStorage.setItem("bookings", JSON.stringify(bookings));
const booked = () => COURSES.filter((course) => saved()[course.code] === "place");
const evening = (course) => `${course.day} ${course.start} to ${course.end}`;
const places = (course) => {
  const own = saved()[course.code];
  if (own === "place") return "you have a place";
  if (own === "waiting") return "you are on the waiting list";
  if (course.free === 0) return "full";
  return course.free === 1 ? "1 place free" : `${course.free} places free`;
};

function refusal(course) {
  const own = booked();
  if (own.length >= LIMIT) return `You have ${LIMIT} courses, more are not possible.`;
  const other = own.find((one) => one.day === course.day && one.start < course.end && course.start < one.end);
  if (other) return `${course.code} overlaps with ${other.code} (${evening(other)}).`;
  return "";
}

function notices() {
  const parts = [];
  if (state.note) parts.push(`<p role="status">${state.note}</p>`);
  if (state.alert) parts.push(`<p role="alert">${state.alert}</p>`);
  return parts.join("");
}

function listPage() {
  const tabs = ["All days", ...DAYS]
    .map((day) => `<button role="tab" aria-selected="${day === state.day}" data-day="${day}">${day}</button>`)
    .join("");
  const levels = ["Any level", "Beginners", "Advanced"]
    .map((level) => `<option${level === state.level ? " selected" : ""}>${level}</option>`)
    .join("");
  const items = COURSES.filter((course) => state.day === "All days" || course.day === state.day)
    .filter((course) => state.level === "Any level" || course.level === state.level)
    .map((course) => `<li><a href="#/course/${course.code}">${course.title}</a>, ${evening(course)}, ${places(course)}</li>`)
    .join("");
  return `<h1>Courses in spring</h1>
    <div role="tablist" aria-label="Day">${tabs}</div>
    <div><label for="level">Level</label> <select id="level">${levels}</select></div>
    ${items ? `<ul>${items}</ul>` : "<p>No course on this day at this level.</p>"}`;
}

function coursePage(course) {
  const own = saved()[course.code];
  const label = own ? (own === "place" ? "Give up my place" : "Leave the waiting list") : course.free ? "Book a place" : "Join the waiting list";
  return `<h1>${course.title}</h1>
    <dl>
      <dt>Code</dt><dd>${course.code}</dd>
      <dt>Level</dt><dd>${course.level}</dd>
      <dt>Time</dt><dd>${evening(course)}, ${course.weeks} weeks</dd>
      <dt>Room</dt><dd>${course.room}</dd>
      <dt>Fee</dt><dd>${course.fee} EUR</dd>
      <dt>Places</dt><dd>${places(course)}</dd>
    </dl>
    <details><summary>What to bring</summary><p>${course.bring}</p></details>
    ${notices()}
    <button data-act="${course.code}">${label}</button>`;
}

function weekPage() {
  const rows = booked()
    .sort((one, two) => DAYS.indexOf(one.day) - DAYS.indexOf(two.day) || one.start.localeCompare(two.start))
    .map((course) => `<tr><td>${course.day}</td><td>${course.start} to ${course.end}</td><td><a href="#/course/${course.code}">${course.title}</a></td><td>${course.room}</td><td>${course.fee} EUR</td></tr>`);
  const waiting = COURSES.filter((course) => saved()[course.code] === "waiting");
  const fees = booked().reduce((sum, course) => sum + course.fee, 0);
  const table = `<table>
      <thead><tr><th>Day</th><th>Time</th><th>Course</th><th>Room</th><th>Fee</th></tr></thead>
      <tbody>${rows.join("")}</tbody>
    </table>
    <p>Fees together: ${fees} EUR</p>`;
  return `<h1>My week</h1>
    ${rows.length ? table : "<p>No course is booked yet.</p>"}
    ${waiting.length ? `<h2>Waiting list</h2><ul>${waiting.map((course) => `<li><a href="#/course/${course.code}">${course.title}</a></li>`).join("")}</ul>` : ""}`;
}

function draw() {
  const [, place, code] = location.hash.split("/");
  const course = COURSES.find((one) => one.code === code);
  if (!place) main.innerHTML = listPage();
  else if (place === "week") main.innerHTML = weekPage();
  else if (place === "course" && course) main.innerHTML = coursePage(course);
  else main.innerHTML = `<h1>No such page</h1><p>There is nothing at ${location.hash}.</p>`;
}

function act(course) {
  const own = saved()[course.code];
  if (own) {
    const question = own === "place" ? `Give up your place in ${course.title}?` : `Leave the waiting list of ${course.title}?`;
    if (!confirm(question)) return;
    const bookings = saved();
    delete bookings[course.code];
    save(bookings);
    say(own === "place" ? "Your place was given up." : "You left the waiting list.", "");
  } else if (course.free === 0) {
    save({ ...saved(), [course.code]: "waiting" });
    say("You are first on the waiting list.", "");
  } else if (refusal(course)) {
    say("", refusal(course));
  } else {
    say("Asking the office…", "");
    document.querySelector("[data-act]").disabled = true;
    setTimeout(() => {
      save({ ...saved(), [course.code]: "place" });
      say(`Your place in ${course.title} is booked.`, "");
    }, CHECK_MILLISECONDS);
  }
}

function say(note, alert) {
  Object.assign(state, { note, alert });
  draw();
}

document.addEventListener("click", (event) => {
  const { day, act: code } = event.target.dataset;
  if (day) {
    state.day = day;
    draw();
  }
  if (code) act(COURSES.find((course) => course.code === code));
});
document.addEventListener("change", (event) => {
  state.level = event.target.value;
  draw();
});
window.addEventListener("hashchange", () => say("", ""));
draw();
