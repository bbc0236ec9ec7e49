// Day, start and end of each weekly evening, fee in euros, free places, and what to bring.
const COURSES = [
  { code: "BB1", title: "Book binding", level: "Beginners", day: "Monday", start: "18:30", end: "20:30", weeks: 6, fee: 90, free: 3, room: "Print room", bring: "A bone folder and an apron." },
  { code: "CH1", title: "Chair caning", level: "Beginners", day: "Monday", start: "19:00", end: "21:00", weeks: 5, fee: 85, free: 1, room: "Workshop 2", bring: "An old chair with a round seat frame." },
  { code: "CE1", title: "Ceramics", level: "Beginners", day: "Tuesday", start: "18:00", end: "20:00", weeks: 8, fee: 140, free: 4, room: "Kiln room", bring: "Old clothes. Clay and glaze are in the fee." },
  { code: "CE2", title: "Ceramics on the wheel", level: "Advanced", day: "Tuesday", start: "20:00", end: "22:00", weeks: 8, fee: 160, free: 2, room: "Kiln room", bring: "A towel and a sponge." },
  { code: "WC1", title: "Wood carving", level: "Beginners", day: "Tuesday", start: "19:30", end: "21:30", weeks: 6, fee: 95, free: 5, room: "Workshop 1", bring: "Gloves against cuts." },
  { code: "LN1", title: "Lino printing", level: "Beginners", day: "Wednesday", start: "18:30", end: "20:30", weeks: 4, fee: 60, free: 6, room: "Print room", bring: "A drawing no larger than a postcard." },
  { code: "WV2", title: "Weaving patterns", level: "Advanced", day: "Wednesday", start: "18:00", end: "21:00", weeks: 5, fee: 120, free: 0, room: "Loom room", bring: "Yarn for a sample." },
  { code: "SH1", title: "Sharpening tools", level: "Beginners", day: "Thursday", start: "18:00", end: "19:30", weeks: 2, fee: 35, free: 8, room: "Workshop 1", bring: "Two blunt knives or chisels." },
  { code: "BB2", title: "Book binding in leather", level: "Advanced", day: "Thursday", start: "19:00", end: "21:30", weeks: 6, fee: 130, free: 2, room: "Print room", bring: "A paring knife." },
];
